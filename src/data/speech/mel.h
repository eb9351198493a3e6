#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dgc {

// The mel scale: mel = 2595 log10(1 + hertz / 700) (S. Young et al., "The HTK book", section 5.4).
double mel_of(double hertz);
double hertz_of(double mel);

// Triangles over the bins of a power spectrum. Their count + 2 corners are equally far apart in mel from 0 to half the
// rate; filter m rises in a straight line (in Hz) from corner m to 1 at corner m + 1 and falls to 0 at corner m + 2.
class MelFilters {
 public:
  // transform: length of the Fourier transform. Throws KeyError when a filter would be so narrow that it holds no bin.
  MelFilters(int64_t count, int64_t transform, int64_t sample_rate);

  int64_t count() const { return static_cast<int64_t>(filters_.size()); }
  // power: transform / 2 + 1 values; out: count() weighted sums of them.
  void apply(const float* power, float* out) const;

 private:
  struct Filter {
    size_t first_bin = 0;
    std::vector<float> weights;
  };
  std::vector<Filter> filters_;
};

}  // namespace dgc
