#pragma once

#include <filesystem>

#include "config/options.h"

namespace dgc {

// Throws UserError unless a run that was made with one config can go on with the other: it names the first key that
// differs and that results depend on. The number of workers may differ; Rank::restore() says what then happens.
void require_resumable(const std::filesystem::path& run, const Config& made_with, const Config& now);

}  // namespace dgc
