#pragma once

#include "config/check.h"

namespace dgc {

// Decides what is left to the program (stem, shortcut, width, the run's name) and refuses keys that contradict one
// another. `origin.file` names the run where the config does not.
void complete(Config& config, const Origin& origin);

}  // namespace dgc
