#pragma once

#include "kernels/backend.h"

namespace dgc {

// What follows the matrix products of one time step, for one stream: `hidden` numbers each, of gates as many times as
// many as the cell has, one after the other. Rows of a step may be computed in any order.

struct RnnForwardRow {
  int64_t hidden;
  const float* bias;       // of every gate: the sum of both; of the gru's third: of the input's alone
  const float* recurrent;  // gru only: W_hh h_before, the third with its bias
  const float* h_before;   // gru only
  const float* c_before;   // lstm only; may be c
  float* gates;            // in: the products (gru: of the input alone); out: the activated gates
  float* c;                // lstm only
  float* extra;            // what backward needs besides: lstm: tanh of c; gru: the third of recurrent
  float* h;
};
void rnn_forward_row(RnnCell, const RnnForwardRow&);

struct RnnBackwardRow {
  int64_t hidden;
  const float* h_before;  // gru only
  const float* c_before;  // lstm only
  const float* dy;        // the gradient of h from above
  float* dh;              // in: that from the step that came next; out: gru: what of h_before's is no product
  float* dc;              // lstm: in: the gradient of c from the step that came next; out: that of c_before
  float* extra;           // in: as forward left it; out: gru: the gradient of the third of recurrent
  float* gates;           // in: as forward left them; out: the gradients of the products
};
void rnn_backward_row(RnnCell, const RnnBackwardRow&);

}  // namespace dgc
