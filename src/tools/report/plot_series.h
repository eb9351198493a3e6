#pragma once

#include <cstddef>
#include <vector>

namespace dgc {

struct Point {
  double x = 0;
  double y = 0;  // NaN: no value here, and a gap in the curve
};
using Points = std::vector<Point>;

// All three functions expect points in order of x and return at most about `most` points, so that a page of long runs
// stays small.

// The least and the greatest of each bucket, in the order they came: outliers survive.
Points envelope(const Points& points, size_t most);

// The mean of the finite values within half a window of points to either side (fewer at the ends), at evenly spaced
// points.
Points moving_mean(const Points& points, size_t window, size_t most);

// For a quantity that changes in stairs: each first and last point of a level. Falls back to the envelope when that is
// too many.
Points levels(const Points& points, size_t most);

}  // namespace dgc
