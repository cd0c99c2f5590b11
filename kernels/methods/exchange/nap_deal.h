/* Node-aware exchange: which rank of a node sends to, and receives from, which other node. */
#ifndef SWP_NAP_DEAL_H
#define SWP_NAP_DEAL_H

#include <stdbool.h>
#include <stdint.h>

/* Data to another node, or one share of the data of another node: dealt to the ranks of this node. */
struct lot {
  int node;
  int share; /* of the data from the node */
  int64_t bytes;
  int first;  /* the local rank that it is dealt to; of shared data, the first of `shares` consecutive ones */
  int shares; /* 1 when it is not shared */
};

/*
 * Deals data for other nodes by decreasing volume, the lower node first, to the local ranks 0, 1, …,
 * size - 1, 0, …. With `sharing` and fewer nodes than ranks, the ranks left over take shares too: each goes
 * to the node with the largest shares at that time, as long as every share has an item. Orders the lots.
 */
void swp_nap_deal_sends(struct lot *lots, int64_t count, int size, int64_t item_bytes, bool sharing);

/* Deals the data from other nodes likewise, to the local ranks size - 1, size - 2, …, 0, size - 1, …. */
void swp_nap_deal_receives(struct lot *lots, int64_t count, int size);

/* Where a share begins in data of whole items; with share == shares, where the data end. */
int64_t swp_nap_share_begin(int64_t bytes, int64_t item_bytes, int shares, int share);

/* Sorts by node, then share. */
void swp_nap_sort_lots(struct lot *lots, int64_t count);

#endif
