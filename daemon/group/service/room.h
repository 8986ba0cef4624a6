/* Has a node room on its file systems? Any thread; blocks as long as a file
 * system does. */
#ifndef CLIENT_GROUP_ROOM_H
#define CLIENT_GROUP_ROOM_H

enum room {
	ROOM_NONE, /* less than 1 MiB, or no inode: the file system is full */
	ROOM_LITTLE,
	ROOM_ENOUGH /* to lead: 64 MiB and 1000 inodes */
};

/* Of the file system of PATH, for this account. A quota of one user is not
 * seen. LITTLE if the file system cannot be asked. */
enum room room_look(const char *path);

#endif
