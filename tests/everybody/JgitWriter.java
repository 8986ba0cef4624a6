/*
 * Changes refs with JGit, which runs no hooks. Standard input has lines
 * "REPO REF OLD NEW" (zeros: no ref); an empty line ends a batch. The answer
 * is a line "ok REF" or "ng REF RESULT" for each change, and an empty line.
 * The repositories stay open, as in a long-lived server.
 */
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.eclipse.jgit.lib.BatchRefUpdate;
import org.eclipse.jgit.lib.NullProgressMonitor;
import org.eclipse.jgit.lib.ObjectId;
import org.eclipse.jgit.lib.RefUpdate;
import org.eclipse.jgit.lib.Repository;
import org.eclipse.jgit.revwalk.RevWalk;
import org.eclipse.jgit.storage.file.FileRepositoryBuilder;
import org.eclipse.jgit.transport.ReceiveCommand;

public class JgitWriter {
	/* JGit writes a batch of many refs to packed-refs, and a ref alone to
	 * its own file. */
	private static final int LOOSE = 20;

	public static void main(String[] args) throws IOException {
		Map<String, Repository> repos = new HashMap<>();
		List<ReceiveCommand> batch = new ArrayList<>();
		Repository repo = null;
		BufferedReader in =
		    new BufferedReader(new InputStreamReader(System.in));
		String line;

		while ((line = in.readLine()) != null) {
			if (line.isEmpty()) {
				answer(repo, batch);
				batch.clear();
				continue;
			}
			String[] word = line.split(" ");
			repo = repos.get(word[0]);
			if (repo == null) {
				repo = new FileRepositoryBuilder()
				    .setGitDir(new File(word[0])).build();
				repos.put(word[0], repo);
			}
			batch.add(new ReceiveCommand(
			    ObjectId.fromString(word[2]),
			    ObjectId.fromString(word[3]), word[1]));
		}
	}

	private static void answer(Repository repo, List<ReceiveCommand> batch) {
		StringBuilder out = new StringBuilder();
		try {
			if (batch.size() <= LOOSE)
				alone(repo, batch);
			else
				together(repo, batch);
		} catch (IOException e) {
			System.err.println(e);
		}
		for (ReceiveCommand c : batch) {
			boolean ok = c.getResult() == ReceiveCommand.Result.OK;
			out.append(ok ? "ok " : "ng ").append(c.getRefName());
			if (!ok)
				out.append(' ').append(c.getResult());
			out.append('\n');
		}
		System.out.println(out);
		System.out.flush();
	}

	private static void together(Repository repo, List<ReceiveCommand> batch)
	    throws IOException {
		BatchRefUpdate b = repo.getRefDatabase().newBatchUpdate();
		b.setAllowNonFastForwards(true);
		b.setAtomic(batch.size() % 2 == 0);
		b.addCommand(batch);
		try (RevWalk walk = new RevWalk(repo)) {
			b.execute(walk, NullProgressMonitor.INSTANCE);
		}
	}

	private static void alone(Repository repo, List<ReceiveCommand> batch)
	    throws IOException {
		for (ReceiveCommand c : batch) {
			RefUpdate u = repo.updateRef(c.getRefName());
			u.setExpectedOldObjectId(c.getOldId());
			u.setForceUpdate(true);
			RefUpdate.Result r;
			if (c.getType() == ReceiveCommand.Type.DELETE) {
				r = u.delete();
			} else {
				u.setNewObjectId(c.getNewId());
				r = u.update();
			}
			c.setResult(r);
		}
	}
}
