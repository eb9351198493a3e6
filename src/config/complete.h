#pragma once

#include "config/check.h"

namespace dgc {

// Decides what the config leaves to the program (stem, shortcut, width, the run's name). Throws UserError if keys
// contradict one another, or KeyError if an owner refuses its own. `origin.file` names the run if the config does not.
void complete(Config& config, const Origin& origin);

// Throws UserError where the completed config would train, but cannot be meant so: a key that has no effect, data that
// are read twice, an output with a home that no shell has put in or braces that stand for nothing. A run that an
// earlier version has made may have it, and is read all the same.
void require_meant(const Config& config, const Origin& origin);

}  // namespace dgc
