/* json.h - prints a text in JSON. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "resp/json.h"

/* Prints it in quotes; null if there is no memory for that. */
void json_print(const char *text);

#endif
