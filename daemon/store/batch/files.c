/* The files backend: loose refs, packed-refs and reflogs as files. */
#include "daemon/store/batch/backend.h"

const struct ref_backend files_backend = {
	.hold = files_hold,
	.held = files_held,
	.look = files_look,
	.has_log = files_has_log,
	.conflict = files_conflict,
	.log = files_log,
};
