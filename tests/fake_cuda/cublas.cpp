// Matrix products by plain loops, summed in double.
#include <cublas_v2.h>

#include <algorithm>

#include "tests/fake_cuda/elements.h"
#include "tests/fake_cuda/runtime.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  int mode = CUBLAS_DEFAULT_MATH;
};

namespace dgc::fake_cuda {
namespace {

cublasStatus_t blas_call(const char* name, const std::function<void()>& body,
                         const void* from = __builtin_return_address(0),
                         cublasStatus_t failure = CUBLAS_STATUS_INTERNAL_ERROR) {
  return static_cast<cublasStatus_t>(library_call(name, failure, body, from));
}

void require_blas(cublasHandle_t handle) {
  if (machine().library_objects.count(handle) == 0) refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no such handle");
}

Element blas_element(cudaDataType_t type) {
  if (type == CUDA_R_32F) return Element::f32;
  if (type == CUDA_R_16F) return Element::f16;
  if (type == CUDA_R_16BF) return Element::bf16;
  refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the fake has no products of this type");
}

struct ColumnMajor {
  const void* data;
  Element type;
  int stride;
  bool transposed;

  // `rows` and `columns` are those of the matrix as it is meant.
  void require(const char* what, int rows, int columns) const {
    const int stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
    if (stride < std::max(1, stored_rows)) refuse(CUBLAS_STATUS_INVALID_VALUE, "{}: columns overlap", what);
    if (rows == 0 || columns == 0) return;
    const size_t numel =
        static_cast<size_t>(stride) * static_cast<size_t>(stored_columns - 1) + static_cast<size_t>(stored_rows);
    require_device(CUBLAS_STATUS_INVALID_VALUE, what, data, numel * size_of(type), size_of(type));
  }
  // Row by row.
  std::vector<float> load(int rows, int columns) const {
    std::vector<float> values;
    values.reserve(static_cast<size_t>(rows) * static_cast<size_t>(columns));
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const int row = transposed ? c : r, column = transposed ? r : c;
        values.push_back(
            get(type, data, static_cast<size_t>(column) * static_cast<size_t>(stride) + static_cast<size_t>(row)));
      }
    }
    return values;
  }
};

}  // namespace
}  // namespace dgc::fake_cuda

using namespace dgc::fake_cuda;

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const auto make = [&] {
    refuse_while_capturing(CUBLAS_STATUS_ALLOC_FAILED, "a handle allocates memory, which a capture does not allow");
    *handle = new cublasContext;
    machine().library_objects.insert(*handle);
  };
  return blas_call("cublasCreate", make, __builtin_return_address(0), CUBLAS_STATUS_ALLOC_FAILED);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const std::lock_guard lock(machine().mutex);
  const bool fails = machine().fails_now("cublasDestroy", __builtin_return_address(0));
  machine().finish_device(current_device());
  if (machine().library_objects.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return fails ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return blas_call("cublasSetStream", [&] {
    require_blas(handle);
    handle->stream = stream;
    handle->workspace = nullptr;  // back to the library's own
  });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  return blas_call("cublasSetWorkspace", [&] {
    require_blas(handle);
    require_device(CUBLAS_STATUS_INVALID_VALUE, "the workspace", workspace, bytes, 256);
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return blas_call("cublasSetMathMode", [&] {
    require_blas(handle);
    handle->mode = mode;
  });
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR" : "another status of cuBLAS";
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int a_stride, const void* b,
                            cudaDataType b_type, int b_stride, const void* beta, void* c, cudaDataType c_type,
                            int c_stride, cublasComputeType_t compute, cublasGemmAlgo_t) {
  return blas_call("cublasGemmEx", [&] {
    require_blas(handle);
    if (m < 0 || n < 0 || k < 0) refuse(CUBLAS_STATUS_INVALID_VALUE, "a size is negative");
    if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
      refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the fake sums in fp32 only");
    }
    // What cuBLAS lists for sums in fp32: factors of one type, and a result of this type or of fp32.
    if (a_type != b_type || (c_type != a_type && c_type != CUDA_R_32F)) {
      refuse(CUBLAS_STATUS_NOT_SUPPORTED, "there is no product of these types");
    }
    const bool halves = a_type != CUDA_R_32F;
    if (halves && (handle->mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0) {
      refuse(CUBLAS_STATUS_NOT_SUPPORTED, "parts of sums of 16-bit products may be joined in 16 bits");
    }
    const bool asks_tf32 =
        compute == CUBLAS_COMPUTE_32F_FAST_TF32 || (handle->mode & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH;
    const bool rounds = !halves && asks_tf32;
    const ColumnMajor left{a, blas_element(a_type), a_stride, op_a != CUBLAS_OP_N};
    const ColumnMajor right{b, blas_element(b_type), b_stride, op_b != CUBLAS_OP_N};
    const Element out = blas_element(c_type);
    left.require("A", m, k);
    right.require("B", k, n);
    ColumnMajor{c, out, c_stride, false}.require("C", m, n);
    const float by = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
    void* const workspace = handle->workspace;
    const size_t spoilt = std::min<size_t>(handle->workspace_bytes, 4096);
    machine().enqueue(handle->stream, "cublasGemmEx", [=] {
      if (workspace != nullptr) spoil(workspace, spoilt);
      std::vector<float> rows = left.load(m, k);
      const ColumnMajor turned{right.data, right.type, right.stride, !right.transposed};
      std::vector<float> columns = turned.load(n, k);
      if (rounds) {
        std::ranges::transform(rows, rows.begin(), to_tf32);
        std::ranges::transform(columns, columns.begin(), to_tf32);
      }
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < m; ++i) {
          const float* const x = rows.data() + static_cast<size_t>(i) * static_cast<size_t>(k);
          const float* const y = columns.data() + static_cast<size_t>(j) * static_cast<size_t>(k);
          double sum = 0;
          for (int l = 0; l < k; ++l) sum += static_cast<double>(x[l]) * static_cast<double>(y[l]);
          const size_t at = static_cast<size_t>(j) * static_cast<size_t>(c_stride) + static_cast<size_t>(i);
          const double before = keep == 0 ? 0 : static_cast<double>(keep) * static_cast<double>(get(out, c, at));
          put(out, c, at, static_cast<float>(static_cast<double>(by) * sum + before));
        }
      }
    });
  });
}
