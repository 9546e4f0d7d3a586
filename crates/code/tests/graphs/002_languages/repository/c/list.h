struct list { struct list *next; };
int list_length(struct list *list);
