#include "tools/report/plot_series.h"

#include <algorithm>
#include <cmath>

#include "run/metrics.h"

namespace dgc {

Points envelope(const Points& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t buckets = std::max<size_t>(1, most / 2);
  Points out;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    const size_t begin = bucket * points.size() / buckets, end = (bucket + 1) * points.size() / buckets;
    const Point *least = nullptr, *greatest = nullptr;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].y)) continue;
      if (least == nullptr || points[i].y < least->y) least = &points[i];
      if (greatest == nullptr || points[i].y > greatest->y) greatest = &points[i];
    }
    if (least == nullptr) {
      out.push_back({points[begin].x, kNoNumber});
    } else {
      out.push_back(*std::min(least, greatest));
      if (least != greatest) out.push_back(*std::max(least, greatest));
    }
  }
  return out;
}

Points moving_mean(const Points& points, size_t window, size_t most) {
  std::vector<double> sums(points.size() + 1, 0.0);
  std::vector<size_t> counts(points.size() + 1, 0);
  for (size_t i = 0; i < points.size(); ++i) {
    const bool finite = std::isfinite(points[i].y);
    sums[i + 1] = sums[i] + (finite ? points[i].y : 0.0);
    counts[i + 1] = counts[i] + (finite ? 1 : 0);
  }
  Points out;
  const size_t count = std::min(points.size(), most), half = window / 2;
  for (size_t n = 0; n < count; ++n) {
    const size_t at = count == 1 ? points.size() - 1 : n * (points.size() - 1) / (count - 1);
    const size_t begin = at < half ? 0 : at - half, end = std::min(points.size(), at + half + 1);
    const size_t finite = counts[end] - counts[begin];
    out.push_back({points[at].x, finite == 0 ? kNoNumber : (sums[end] - sums[begin]) / static_cast<double>(finite)});
  }
  return out;
}

Points levels(const Points& points, size_t most) {
  Points out;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool inside =
        i > 0 && i + 1 < points.size() && points[i - 1].y == points[i].y && points[i + 1].y == points[i].y;
    if (!inside) out.push_back(points[i]);
    if (out.size() > most) return envelope(points, most);
  }
  return out;
}

}  // namespace dgc
