/*
 * The content of a directory, kept in memory for laying out again and again:
 * regular files (also with several names), directories and symbolic links. One
 * thread. An error ends the program.
 */
#ifndef TESTS_LIB_TREE_IMAGE_H
#define TESTS_LIB_TREE_IMAGE_H

struct tree_image;

/* Reads all files below the directory DIR_FD, which is borrowed. */
struct tree_image *tree_image_take(int dir_fd);
/* Removes all files below DIR_FD and lays the image out. Links are not
 * followed. */
void tree_image_lay_out(const struct tree_image *image, int dir_fd);
void tree_image_free(struct tree_image *image);

/* The result of lstat(2) for every entry below DIR_FD, without the access time;
 * to be freed. Only directories are opened. If two descriptions are equal, no
 * entry was changed in between. */
char *tree_image_describe(int dir_fd);

#endif
