#pragma once

#include "config/check.h"

namespace dgc {

// Decides what the config leaves to the program (stem, shortcut, width, the run's name). Throws UserError if keys
// contradict one another, or KeyError if an owner refuses its own. `origin.file` names the run if the config does not.
void complete(Config& config, const Origin& origin);

}  // namespace dgc
