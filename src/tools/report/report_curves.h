#pragma once

#include <string>
#include <vector>

#include "tools/report/report_data.h"

namespace dgc {

// What the page's script (report.js) draws, as one JSON object that is safe inside of a <script> element:
//   axes   what curves can be drawn over: epochs, steps, seconds of training, bytes that each worker has sent
//   plots  what can be drawn: key, name, kind of scale, whether it can be smoothed, whether it is shown at first
//   runs   for each group its name, its look (curve_class()), how many seeds it has, the places of its steps and of its
//          evaluations along each axis, and its curves: y, of several seeds their mean, and low and high of the band.
// All groups together have about 720 places, and each has from 40 to 360, or one for each step. Of losses and gradient
// norms each is the mean of the steps since the place before; of what changes in stairs it is the last step's value.
// Seconds of training are those that steps took, without evaluations and checkpoints.
std::string curves_json(const std::vector<RunGroup>& groups);

}  // namespace dgc
