#include "list.h"
#include <stdio.h>

static int count(struct list *list) { return list ? 1 + count(list->next) : 0; }

/* How many there are. */
int list_length(struct list *list)
{
    return count(list);
}
