/* version.h - the release's number; the build file reads it from here. */
#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

#define HOLDFAST_VERSION "0.1.0"

#endif
