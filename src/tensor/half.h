#pragma once

#include <cstdint>

namespace dgc {

// IEEE 754 binary16 <-> binary32, round to nearest even, in plain integer arithmetic: the same bits on every machine.
uint16_t float_to_half(float value);
float half_to_float(uint16_t bits);

}  // namespace dgc
