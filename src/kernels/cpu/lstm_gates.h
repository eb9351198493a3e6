#pragma once

#include <cstdint>

namespace dgc {

// What follows the matrix products of one time step, for one stream: `hidden` numbers each, of gates four times as many
// (i, f, g, o one after the other). Rows of a step may be computed in any order.

struct LstmForwardRow {
  int64_t hidden;
  const float* bias;      // [4 * hidden], the sum of both
  const float* c_before;  // may be c
  float* gates;           // in: the products; out: sigmoid or tanh of them and the bias
  float* c;
  float* tanh_c;
  float* h;
};
void lstm_forward_row(const LstmForwardRow&);

struct LstmBackwardRow {
  int64_t hidden;
  const float* c_before;
  const float* tanh_c;
  const float* dy;  // the gradient of h from above,
  const float* dh;  // and from the step that came next
  float* dc;        // in: the gradient of c from the step that came next; out: that of c_before
  float* gates;     // in: as forward left them; out: the gradients of the products
};
void lstm_backward_row(const LstmBackwardRow&);

}  // namespace dgc
