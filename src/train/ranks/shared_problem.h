#pragma once

#include <string>
#include <vector>

#include "dist/communicator.h"

namespace dgc {

// The texts of all ranks, whole, in rank order, on every rank. Collective: one exchange where all texts are empty, else
// two.
std::vector<std::string> told_by_all(Communicator&, Device&, const std::string& mine);
// The same of lists of texts, which have no NUL in them.
std::vector<std::vector<std::string>> told_by_all(Communicator&, Device&, const std::vector<std::string>& mine);

// The ranks tell each other whether their part of something went well. Collective. own: this rank's problem as a
// sentence, or "". Returns, on every rank, the problem of the lowest rank that has one, behind that rank's number where
// there are several ranks; "" when no rank has a problem.
std::string shared_problem(Communicator&, Device&, const std::string& own);

}  // namespace dgc
