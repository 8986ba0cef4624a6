/*
 * The files backend: loose refs, packed-refs and reflogs as files. Private to
 * files*.c.
 */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "daemon/store/batch/backend.h"

/* ---- the operations (backend.h) ---- */

void files_stage(struct pass *p, struct repo_slice *g);
bool files_hold(struct pass *p, struct change *c, struct loose_value *value);
void files_held(struct pass *p, struct repo_slice *g);
int files_look(struct pass *p, const struct change *at,
    struct loose_value *value);
void files_glance(struct pass *p, struct repo_slice *g);
int files_has_log(struct pass *p, const struct change *at);
void files_conflict(struct pass *p, struct change *c);
void files_log(struct pass *p, struct change *c, bool create);
bool files_seal(struct pass *p, struct repo_slice *g);
void files_wait(struct pass *p, struct repo_slice *g);
void files_sync(struct pass *p, struct repo_slice *g);
void files_synced(struct pass *p, struct repo_slice *g);
int files_sync_error(const struct repo_slice *g);
void files_publish(struct pass *p, struct repo_slice *g);
void files_release(struct pass *p, struct repo_slice *g);
bool files_resume(struct pass *p, struct repo_slice *g);

/* ---- steps ---- */

/* Writes the new value to a staged file. 0 or negative errno. */
int files_stage_value(struct pass *p, struct change *c);
/* Fails C if publishing C would replace or remove a file that a sticky
 * directory keeps (pass_is_kept()). */
void files_check_sticky(const struct pass *p, struct change *c);
/* Lets other batches try for packed-refs.lock and for a large file. */
void files_give_turn(struct repo_slice *g);
/* Writes packed-refs.new again if some of its changes failed since. 0 or
 * negative errno: then there is no packed-refs.new. */
int files_refit_packed(struct pass *p, struct repo_slice *g);
/* Call if packed-refs.new is written: renames the file, then looks for
 * conflicting writers. */
void files_publish_packed(struct pass *p, struct repo_slice *g);

#endif
