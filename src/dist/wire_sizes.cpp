#include "dist/wire_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/errors.h"
#include "tensor/wire_types.h"

namespace dgc {

std::string_view wire_format_name(WireFormat format) {
  switch (format) {
    case WireFormat::paper48:
      return "paper48";
    case WireFormat::fp32_int32:
      return "fp32+int32";
    case WireFormat::fp32_block16:
      return "fp32+block16";
    case WireFormat::fp16_block16:
      return "fp16+block16";
    case WireFormat::fp16_rice:
      return "fp16+rice";
  }
  DGC_CHECK(false, "unknown wire format");
  return {};
}

double rice_bits(int64_t numel, int64_t k) {
  const double q = 1.0 - static_cast<double>(k) / static_cast<double>(numel);
  double best = std::numeric_limits<double>::infinity();
  for (int b = 0; b < 32; ++b) {
    const double skipped = std::pow(q, std::ldexp(1.0, b));
    best = std::min(best, b + 1 + skipped / (1 - skipped));
  }
  return best;
}

int64_t wire_bytes(WireFormat format, int64_t numel, int64_t k) {
  DGC_CHECK(k >= 1 && k <= numel, "1 <= k <= numel");
  switch (format) {
    case WireFormat::paper48:
      return 6 * k;
    case WireFormat::fp32_int32:
      return 8 * k;
    case WireFormat::fp32_block16:
      return 4 * dgc_blocks(numel) + (2 * k + 3) / 4 * 4 + 4 * k;
    case WireFormat::fp16_block16:
      return 4 * dgc_blocks(numel) + 2 * k + 2 * k;
    case WireFormat::fp16_rice:
      return static_cast<int64_t>(std::ceil(static_cast<double>(k) * (16 + rice_bits(numel, k)) / 8));
  }
  DGC_CHECK(false, "unknown wire format");
  return 0;
}

}  // namespace dgc
