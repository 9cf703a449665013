/* An intrusive, circular, doubly linked list: head and items are the same small struct. Allocates
 * nothing. */
#ifndef DP_BASE_LIST_H
#define DP_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dp_list {
    struct dp_list *next;
    struct dp_list *prev;
} dp_list;

#define DP_LIST_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void dp_list_init(dp_list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool dp_list_empty(const dp_list *head)
{
    return head->next == head;
}

static inline void dp_list_push_back(dp_list *head, dp_list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/* Makes the item a list of its own, so that a second removal is harmless. */
static inline void dp_list_remove(dp_list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    dp_list_init(item);
}

#endif
