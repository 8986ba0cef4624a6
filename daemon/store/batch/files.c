/* The files backend: loose refs, packed-refs and reflogs as files. */
#include "daemon/store/batch/files.h"

const struct ref_backend files_backend = {
	.stage = files_stage,
	.hold = files_hold,
	.held = files_held,
	.look = files_look,
	.has_log = files_has_log,
	.conflict = files_conflict,
	.log = files_log,
	.seal = files_seal,
	.wait = files_wait,
	.sync = files_sync,
	.synced = files_synced,
	.sync_error = files_sync_error,
	.publish = files_publish,
	.release = files_release,
	.resume = files_resume,
};
