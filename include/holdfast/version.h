/* version.h - the release's number.
 *
 * Before 1.0 a new second number may change the interface: the soname of
 * libholdfast.so has the first two.
 */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#define HOLDFAST_VERSION "0.1.0"

#endif
