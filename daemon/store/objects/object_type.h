/*
 * The type of an object, as found by a look-up. The first four are git's
 * numbers in packs.
 */
#ifndef STORE_OBJECT_TYPE_H
#define STORE_OBJECT_TYPE_H

enum object_type {
	OBJECT_ABSENT = 0,
	OBJECT_COMMIT = 1,
	OBJECT_TREE = 2,
	OBJECT_BLOB = 3,
	OBJECT_TAG = 4,
	OBJECT_ERROR = 5 /* the object or a possible place is unreadable */
};

#endif
