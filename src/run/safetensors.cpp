#include "run/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "run/safetensors_header.h"
#include "tensor/errors.h"

namespace dgc {

FileWriter::Written write_safetensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                                      const std::map<std::string, std::string>& metadata, Device& device) {
  SafetensorsHeader header{.tensors = {}, .metadata = metadata};
  uint64_t end = 0;
  for (const TensorSource& tensor : tensors) {
    const uint64_t begin = end;
    end += tensor.bytes();
    const Shape shape = tensor.view ? tensor.view.shape : Shape();
    header.tensors.push_back({tensor.name, tensor.is_fp32() ? "F32" : "I64", {shape.begin(), shape.end()}, begin, end});
  }
  const std::string text = to_safetensors_header(header);
  const uint64_t length = text.size();  // little-endian in the file, as on every machine this runs on

  FileWriter file(path);
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  std::vector<float> host;
  const auto to_host = [&](ConstView view, auto& numbers) {
    numbers.resize(static_cast<size_t>(view.numel()));
    device.copy_out(numbers.data(), view.data, view.bytes());
  };
  for (const TensorSource& tensor : tensors) {
    if (!tensor.view) {
      file.write(&tensor.number, sizeof(tensor.number));
      continue;
    }
    if (!tensor.is_fp32()) {
      std::vector<int32_t> numbers;
      to_host(tensor.view, numbers);
      const std::vector<int64_t> wide(numbers.begin(), numbers.end());
      file.write(wide.data(), wide.size() * sizeof(int64_t));
      continue;
    }
    to_host(tensor.view, host);
    file.write(host.data(), host.size() * sizeof(float));
  }
  return file.finish();
}

SafetensorsFile::SafetensorsFile(std::string bytes, const std::string& name) : bytes_(std::move(bytes)), name_(name) {
  uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) throw_user_error("{}: {} bytes are too few for safetensors", name, bytes_.size());
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length > bytes_.size() - sizeof(length)) throw_user_error("{}: its header is longer than the file", name);
  const size_t data = sizeof(length) + length;
  const SafetensorsHeader header =
      parse_safetensors_header(bytes_.substr(sizeof(length), length), bytes_.size() - data, name);
  for (const SafetensorsEntry& entry : header.tensors) {
    tensors_[entry.name] = {entry.dtype, entry.shape,
                            std::string_view(bytes_).substr(data + entry.begin, entry.end - entry.begin)};
  }
}

void SafetensorsFile::load(const std::string& tensor, View to, Device& device) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) throw_user_error("{}: it has no tensor {}", name_, tensor);
  const Entry& entry = found->second;
  if (entry.dtype != "F32" || !std::ranges::equal(entry.shape, to.shape)) {
    throw_user_error("{}: tensor {} is {} [{}] but the model needs F32 {}", name_, tensor, entry.dtype,
                     fmt::join(entry.shape, ", "), to.shape.str());
  }
  device.copy_in(to.data, entry.bytes.data(), entry.bytes.size());
}

}  // namespace dgc
