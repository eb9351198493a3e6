#include "tests/ptx/sass/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/ptx/interpreter/error.h"

namespace dgc::ptx::sass {
namespace {

// The attributes of .nv.info that matter here, as nvdisasm names them.
enum Attribute : uint8_t { kMaxThreads = 0x05, kParamCbank = 0x0a, kFrameSize = 0x11 };
constexpr uint8_t kSizedFormat = 0x04;  // the others' values have two bytes
constexpr size_t kInstructionBytes = 16;

class Elf {
 public:
  Elf(const std::string& bytes, std::string origin) : bytes_(bytes), origin_(std::move(origin)) {
    const auto header = at<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("is no ELF file");
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    if (header.e_shstrndx >= sections_.size()) fail("has no names of sections");
    const std::string_view names = content(sections_[header.e_shstrndx]);
    for (const Elf64_Shdr& section : sections_) by_name_[string_at(names, section.sh_name)] = &section;
    const Elf64_Shdr& symbols = section(".symtab");
    symbol_names_ = content(section(".strtab"));
    for (size_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
      symbols_.push_back(at<Elf64_Sym>(symbols.sh_offset + i * sizeof(Elf64_Sym)));
    }
  }

  const Elf64_Shdr* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  const Elf64_Shdr& section(const std::string& name) const {
    const Elf64_Shdr* const found = find(name);
    if (found == nullptr) fail("has no section " + name);
    return *found;
  }
  std::string_view content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    if (section.sh_offset > bytes_.size() || bytes_.size() - section.sh_offset < section.sh_size) fail("is cut short");
    return std::string_view(bytes_).substr(section.sh_offset, section.sh_size);
  }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  std::string name_of(const Elf64_Sym& symbol) const { return string_at(symbol_names_, symbol.st_name); }
  const Elf64_Shdr* section_of(const Elf64_Sym& symbol) const {
    return symbol.st_shndx < sections_.size() ? &sections_[symbol.st_shndx] : nullptr;
  }

  // Calls take(attribute, value) for each of a section of .nv.info.
  template <typename F>
  void for_attributes(const std::string& name, const F& take) const {
    for (std::string_view rest = content(section(name)); !rest.empty();) {
      const auto format = number<uint8_t>(rest, 0), attribute = number<uint8_t>(rest, 1);
      size_t size = 4;
      if (format == kSizedFormat) {
        size += number<uint16_t>(rest, 2);
        if (size > rest.size()) fail("is cut short");
        take(attribute, rest.substr(4, size - 4));
      }
      rest.remove_prefix(std::min(size, rest.size()));
    }
  }

  template <typename T>
  T number(std::string_view text, size_t offset) const {
    if (offset > text.size() || text.size() - offset < sizeof(T)) fail("is cut short");
    T value;
    std::memcpy(&value, text.data() + offset, sizeof(T));
    return value;
  }

  [[noreturn]] void fail(const std::string& what) const { throw_ptx_error("{} {}", origin_, what); }

 private:
  template <typename T>
  T at(uint64_t offset) const {
    return number<T>(bytes_, offset);
  }
  std::string string_at(std::string_view names, uint64_t offset) const {
    if (offset >= names.size()) fail("has a name that lies nowhere");
    return std::string(names.substr(offset, names.find('\0', offset) - offset));
  }

  const std::string& bytes_;
  std::string origin_;
  std::vector<Elf64_Shdr> sections_;
  std::map<std::string, const Elf64_Shdr*> by_name_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view symbol_names_;
};

void read_attributes(const Elf& elf, const std::string& name, Resources& resources) {
  elf.for_attributes(".nv.info." + name, [&](uint8_t attribute, std::string_view value) {
    if (attribute == kMaxThreads) resources.most_threads = elf.number<uint32_t>(value, 0);
    if (attribute == kParamCbank) {
      if (elf.number<uint16_t>(value, 4) != kParamBase) elf.fail("is not for sm_90: its arguments lie elsewhere");
      resources.param_bytes = elf.number<uint16_t>(value, 6);
    }
  });
}

void read_stacks(const Elf& elf, std::map<std::string, Resources>& kernels) {
  elf.for_attributes(".nv.info", [&](uint8_t attribute, std::string_view value) {
    if (attribute != kFrameSize) return;
    const auto symbol = elf.number<uint32_t>(value, 0);
    if (symbol >= elf.symbols().size()) elf.fail("has a stack of no function");
    const auto found = kernels.find(elf.name_of(elf.symbols()[symbol]));
    if (found != kernels.end()) found->second.stack_bytes = elf.number<uint32_t>(value, 4);
  });
}

}  // namespace

std::map<std::string, Resources> read_cubin(const std::string& bytes, const std::string& origin) {
  const Elf elf(bytes, origin);
  const std::string prefix = ".text.";
  std::map<std::string, Resources> kernels;
  for (const Elf64_Sym& symbol : elf.symbols()) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
    const std::string name = elf.name_of(symbol);
    Resources& resources = kernels[name];
    const Elf64_Shdr& section = elf.section(prefix + name);
    const std::string_view code = elf.content(section);
    for (size_t at = 0; at < code.size(); at += kInstructionBytes) {
      resources.code.push_back(elf.number<uint64_t>(code, at));
    }
    for (const Elf64_Sym& other : elf.symbols()) {
      if (ELF64_ST_TYPE(other.st_info) == STT_FUNC && elf.section_of(other) == &section) {
        resources.functions[elf.name_of(other)] = other.st_value;
      }
    }
    if (const Elf64_Shdr* const shared = elf.find(".nv.shared." + name)) {
      resources.shared_bytes = static_cast<unsigned>(shared->sh_size);
    }
    read_attributes(elf, name, resources);
  }
  read_stacks(elf, kernels);
  return kernels;
}

}  // namespace dgc::ptx::sass
