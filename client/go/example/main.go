// The example moves a branch, tags it in the same transaction, and prints the
// changes: example /srv/git/a.git refs/heads/main NEW-COMMIT
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"refd"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: example GIT-DIR BRANCH COMMIT")
	}
	repo, err := refd.OpenRepository(args[0])
	if err != nil {
		return err
	}
	client, err := refd.Dial(ctx, "")
	if err != nil {
		return err
	}
	defer client.Close()
	txn := refd.NewTransaction(repo).Update(args[1], args[2], "").
		Create("refs/tags/at-"+args[2], args[2])
	txn.Atomic = true
	report, err := client.Transact(ctx, txn)
	var unknown *refd.UnknownError
	switch {
	case errors.As(err, &unknown): // done or not: the id tells later
		return fmt.Errorf("%w\nask: refd query %s", err, unknown.Txid)
	case errors.Is(err, refd.Exists):
		return fmt.Errorf("nothing was done: tagged before: %w", err)
	case err != nil:
		return err
	}
	fmt.Println("committed", report.Token)
	page, err := client.Log(ctx, refd.Selection{Repository: repo,
		Txid: txn.Txid})
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		for _, c := range record.Changes {
			fmt.Println(record.Lsn, c.Ref, c.Old, "->", c.New)
		}
	}
	return nil
}
