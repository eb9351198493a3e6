#pragma once

#include "kernels/backend.h"

namespace dgc {

// What follows the matrix products of one time step, for one stream. Every array has `hidden` numbers, and arrays of
// gates have so many for each gate of the cell, one gate after the other. The rows of a step may be computed in any
// order.

struct RnnForwardRow {
  int64_t hidden;
  const float* bias;       // b_ih + b_hh for each gate; b_ih alone for the gru's third gate
  const float* recurrent;  // gru only: W_hh h_before, with b_hh for the third gate
  const float* h_before;   // gru only
  const float* c_before;   // lstm only; may be c
  float* gates;            // in: the products (gru: of the input alone); out: the activated gates
  float* c;                // lstm only
  float* extra;            // what backward needs besides. lstm: tanh of c; gru: the third gate of recurrent
  float* h;
};
void rnn_forward_row(RnnCell, const RnnForwardRow&);

struct RnnBackwardRow {
  int64_t hidden;
  const float* h_before;  // gru only
  const float* c_before;  // lstm only
  const float* dy;        // the gradient of h from above
  float* dh;     // in: the gradient of h from the next time step; out (gru): h_before's gradient but for products
  float* dc;     // lstm only. in: the gradient of c from the next time step; out: the gradient of c_before
  float* extra;  // in: what forward wrote; out (gru): the gradient of the third gate of recurrent
  float* gates;  // in: what forward wrote; out: the gradients of the products
};
void rnn_backward_row(RnnCell, const RnnBackwardRow&);

}  // namespace dgc
