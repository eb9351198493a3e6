#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "run/file_io.h"
#include "tensor/device.h"
#include "tensor/view.h"

namespace dgc {

// A tensor on its way into a file: memory of a device in fp32 or int32, which becomes int64 as PyTorch's labels are, or
// one int64 number.
struct TensorSource {
  std::string name;
  ConstView view;
  int64_t number = 0;  // written where view is null

  bool is_fp32() const { return view && view.dtype == DType::f32; }
  uint64_t bytes() const { return is_fp32() ? view.bytes() : static_cast<uint64_t>(view.numel()) * sizeof(number); }
};

// Writes the safetensors format: a JSON header, then the tensors' bytes in the given order. The file is synced to the
// disk.
FileWriter::Written write_safetensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                                      const std::map<std::string, std::string>& metadata, Device& device);

// A file's tensors in host memory.
class SafetensorsFile {
 public:
  // Throws UserError naming `name` unless `bytes` is a whole safetensors file.
  SafetensorsFile(std::string bytes, const std::string& name);

  struct Entry {
    std::string dtype;  // "F32", "I64", ...
    std::vector<int64_t> shape;
    std::string_view bytes;
  };

  const std::map<std::string, Entry>& tensors() const { return tensors_; }
  // Copies a tensor to a device. Throws UserError naming file and tensor when it is missing or of another shape or
  // type.
  void load(const std::string& tensor, View to, Device& device) const;

 private:
  std::string bytes_;
  std::string name_;
  std::map<std::string, Entry> tensors_;
};

}  // namespace dgc
