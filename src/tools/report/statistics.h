#pragma once

#include <cstddef>
#include <vector>

// What a few runs of one experiment, which differ in their seeds, say about it.
namespace dgc {

// The mean of a sample and its standard deviation, with n - 1 in the denominator. Values that are not finite are left
// out. Of no value both are NaN, and so is the deviation of one.
struct Sample {
  size_t count = 0;
  double mean = 0, deviation = 0;
};
Sample sample_of(const std::vector<double>& values);

// Half the width of the 95 % confidence interval of the mean, by Student's t distribution with n - 1 degrees of
// freedom: NaN for fewer than two values. The values are taken as independent draws from a normal distribution.
double confidence_95(const Sample&);

}  // namespace dgc
