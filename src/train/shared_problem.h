#pragma once

#include <string>

#include "dist/communicator.h"

namespace dgc {

// The ranks tell each other whether their part of something went well. Collective. own: what did not, as a sentence, or
// nothing. Returns what the lowest rank with a problem said, behind that rank's number where there are several ranks;
// the same on every rank, and nothing when all went well everywhere.
std::string shared_problem(Communicator&, Device&, const std::string& own);

}  // namespace dgc
