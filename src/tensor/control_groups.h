#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace dgc {

// These functions return what Linux's control groups (cgroups(7), versions 1 and 2) leave this process of the machine,
// or nothing where no group sets a limit: docker --cpus and --memory, a pod's limits, CPUQuota and MemoryMax of
// systemd. They look for the files below `root`.

// Returns a number of cores, which may be a fraction.
std::optional<double> processor_limit(const std::filesystem::path& root = "/");

// Returns the bytes that may still be taken. What the system holds of files can be had back, and counts as free.
std::optional<size_t> memory_left(const std::filesystem::path& root = "/");

}  // namespace dgc
