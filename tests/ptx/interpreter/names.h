#pragma once

#include <string>
#include <typeinfo>

namespace dgc::ptx {

// A name of an object file as C++ writes it.
std::string readable_name(const std::string& name);
// What of a name is the struct of a kernel: of void dgc::cuda::global<K>(K::Args), K. Empty where it is another
// function.
std::string kernel_of_entry(const std::string& entry);
std::string kernel_of_type(const std::type_info& type);

}  // namespace dgc::ptx
