/*
 * A directory's content kept in memory, to be laid out again and again: regular
 * files, several names of one too, directories and symbolic links. One thread; what fails ends the
 * program, as nothing in a test can go on without it.
 */
#ifndef TESTS_LIB_TREE_IMAGE_H
#define TESTS_LIB_TREE_IMAGE_H

struct tree_image;

/* Of all that is below the directory DIR_FD, which is borrowed. */
struct tree_image *tree_image_take(int dir_fd);
/* Removes what is below DIR_FD, whatever it is, and lays the image out. Links
 * are not followed. */
void tree_image_lay_out(const struct tree_image *image, int dir_fd);
void tree_image_free(struct tree_image *image);

/* What lstat(2) says of each entry below DIR_FD, but for the time of the last
 * reading; to be freed. Nothing is opened but directories. Two descriptions
 * that are the same: nothing was changed between them. */
char *tree_image_describe(int dir_fd);

#endif
