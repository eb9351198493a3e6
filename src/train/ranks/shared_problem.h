#pragma once

#include <string>

#include "dist/communicator.h"

namespace dgc {

// The ranks tell each other whether their part of something went well. Collective. own: this rank's problem as a
// sentence, or "". Returns, on every rank, the problem of the lowest rank that has one, behind that rank's number where
// there are several ranks; "" when no rank has a problem.
std::string shared_problem(Communicator&, Device&, const std::string& own);

}  // namespace dgc
