#pragma once

#include <filesystem>
#include <string>
#include <vector>

// RUN/classes.json: what people call the classes of a model of images, a list of strings in the order of the labels.
namespace dgc {

// Of an image_folder the names are those of its class folders, by which an evaluation finds the classes.
inline constexpr const char* kClassNamesFile = "classes.json";

// Writes no file where there are no names. Throws UserError when the file cannot be written.
void save_class_names(const std::filesystem::path& run, const std::vector<std::string>& names);

// Returns no names where the run has no such file. Throws UserError when it is damaged or cannot be read.
std::vector<std::string> run_class_names(const std::filesystem::path& run);

// Throws UserError that names the first class that differs, where the run and the data have names of classes, or when
// the run's cannot be read.
void require_run_class_names(const std::filesystem::path& run, const std::vector<std::string>& names);

}  // namespace dgc
