module @jit_decompositions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x5xf64>, %arg1: tensor<6x4xf64>) -> (tensor<5xf64> {jax.result_info = "result[0]"}, tensor<4xf64> {jax.result_info = "result[1]"}, tensor<5x5xf64> {jax.result_info = "result[2]"}, tensor<6x4xf64> {jax.result_info = "result[3]"}, tensor<6x4xf64> {jax.result_info = "result[4]"}, tensor<4x4xf64> {jax.result_info = "result[5]"}, tensor<4x6xf64> {jax.result_info = "result[6]"}, tensor<i64> {jax.result_info = "result[7]"}, tensor<4xf64> {jax.result_info = "result[8]"}) {
    %0:2 = call @eigh(%arg0) : (tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>)
    %1:3 = call @svd(%arg1) : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>)
    %2:2 = call @qr(%arg1) : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4x4xf64>)
    %3 = call @_diag(%0#0) : (tensor<5xf64>) -> tensor<5x5xf64>
    %4 = stablehlo.dot_general %0#1, %3, contracting_dims = [1] x [0] : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %5 = stablehlo.transpose %0#1, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %6 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %7 = stablehlo.broadcast_in_dim %1#1, dims = [1] : (tensor<4xf64>) -> tensor<1x4xf64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x4xf64>) -> tensor<6x4xf64>
    %9 = stablehlo.multiply %1#0, %8 : tensor<6x4xf64>
    %10 = stablehlo.dot_general %9, %1#2, contracting_dims = [1] x [0] : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
    %11 = stablehlo.dot_general %2#0, %2#1, contracting_dims = [1] x [0] : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
    %12 = stablehlo.abs %2#1 : tensor<4x4xf64>
    %13 = call @_pinv(%arg1) : (tensor<6x4xf64>) -> tensor<4x6xf64>
    %14 = call @matrix_rank(%arg1) : (tensor<6x4xf64>) -> tensor<i64>
    %15 = stablehlo.slice %arg1 [0:6, 0:1] : (tensor<6x4xf64>) -> tensor<6x1xf64>
    %16 = stablehlo.reshape %15 : (tensor<6x1xf64>) -> tensor<6xf64>
    %17 = call @_lstsq(%arg1, %16) : (tensor<6x4xf64>, tensor<6xf64>) -> tensor<4xf64>
    return %0#0, %1#1, %6, %10, %11, %12, %13, %14, %17 : tensor<5xf64>, tensor<4xf64>, tensor<5x5xf64>, tensor<6x4xf64>, tensor<6x4xf64>, tensor<4x4xf64>, tensor<4x6xf64>, tensor<i64>, tensor<4xf64>
  }
  func.func private @eigh(%arg0: tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>) {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<5x5xf64>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %3 = stablehlo.divide %1, %2 : tensor<5x5xf64>
    %4:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%3) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xf64>, tensor<i32>)
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %6 = stablehlo.compare EQ, %4#2, %5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %10 = stablehlo.select %9, %4#0, %8 : tensor<5x5xi1>, tensor<5x5xf64>
    %11 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<1xi1>) -> tensor<5xi1>
    %14 = stablehlo.select %13, %4#1, %12 : tensor<5xi1>, tensor<5xf64>
    return %14, %10 : tensor<5xf64>, tensor<5x5xf64>
  }
  func.func private @svd(%arg0: tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>) {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 83 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], [n, o], [p, q], []) {i=6, j=4, k=6, l=4, m=4, n=6, o=4, p=4, q=4}, custom>} : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<6x4xf64>, tensor<4x4xf64>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1xi1>) -> tensor<4xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<4xi1>, tensor<4xf64>
    %7 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x4xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<6x4xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<6x4xi1>, tensor<6x4xf64>
    %11 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x4xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<4x4xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<4x4xi1>, tensor<4x4xf64>
    return %10, %6, %14 : tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>
  }
  func.func private @qr(%arg0: tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4x4xf64>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %c = stablehlo.constant dense<-1> : tensor<i64>
    %0:2 = stablehlo.custom_call @lapack_dgeqrf_ffi(%arg0) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m]) {i=6, j=4, k=6, l=4, m=4}, custom>} : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>)
    %1 = stablehlo.custom_call @lapack_dorgqr_ffi(%0#0, %0#1) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k])->([l, m]) {i=6, j=4, k=4, l=6, m=4}, custom>} : (tensor<6x4xf64>, tensor<4xf64>) -> tensor<6x4xf64>
    %2 = stablehlo.slice %0#0 [0:4, 0:4] : (tensor<6x4xf64>) -> tensor<4x4xf64>
    %3 = stablehlo.iota dim = 0 : tensor<4x4xi64>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4x4xi64>
    %5 = stablehlo.add %3, %4 : tensor<4x4xi64>
    %6 = stablehlo.iota dim = 1 : tensor<4x4xi64>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x4xf64>
    %9 = stablehlo.select %7, %8, %2 : tensor<4x4xi1>, tensor<4x4xf64>
    return %1, %9 : tensor<6x4xf64>, tensor<4x4xf64>
  }
  func.func private @_diag(%arg0: tensor<5xf64>) -> tensor<5x5xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.pad %arg0, %cst, low = [0], high = [0], interior = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<5xf64>
    %1 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %2 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %4 = stablehlo.add %1, %3 : tensor<5x5xi64>
    %5 = stablehlo.compare EQ, %4, %2, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %6 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %7 = call @_where(%5, %6, %cst) : (tensor<5x5xi1>, tensor<5x1xf64>, tensor<f64>) -> tensor<5x5xf64>
    return %7 : tensor<5x5xf64>
  }
  func.func private @_where(%arg0: tensor<5x5xi1>, %arg1: tensor<5x1xf64>, %arg2: tensor<f64>) -> tensor<5x5xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<5x1xf64>) -> tensor<5x5xf64>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<5x5xi1>, tensor<5x5xf64>
    return %2 : tensor<5x5xf64>
  }
  func.func private @_pinv(%arg0: tensor<6x4xf64>) -> tensor<4x6xf64> {
    %cst = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %cst_0 = stablehlo.constant dense<6.000000e+01> : tensor<f64>
    %cst_1 = stablehlo.constant dense<2.2204460492503131E-16> : tensor<f64>
    %0 = stablehlo.multiply %cst_0, %cst_1 : tensor<f64>
    %1:3 = call @svd_0(%arg0) : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>)
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<1xf64>
    %3 = stablehlo.slice %1#1 [0:1] : (tensor<4xf64>) -> tensor<1xf64>
    %4 = stablehlo.multiply %2, %3 : tensor<1xf64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<1xf64>) -> tensor<4xf64>
    %6 = stablehlo.compare GT, %1#1, %5, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
    %7 = call @_where_1(%6, %1#1, %cst) : (tensor<4xi1>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    %8 = stablehlo.transpose %1#2, dims = [1, 0] : (tensor<4x4xf64>) -> tensor<4x4xf64>
    %9 = stablehlo.transpose %1#0, dims = [1, 0] : (tensor<6x4xf64>) -> tensor<4x6xf64>
    %10 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<4x1xf64>) -> tensor<4x6xf64>
    %12 = stablehlo.divide %9, %11 : tensor<4x6xf64>
    %13 = stablehlo.dot_general %8, %12, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x4xf64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    return %13 : tensor<4x6xf64>
  }
  func.func private @svd_0(%arg0: tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>) {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 83 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], [n, o], [p, q], []) {i=6, j=4, k=6, l=4, m=4, n=6, o=4, p=4, q=4}, custom>} : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<6x4xf64>, tensor<4x4xf64>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1xi1>) -> tensor<4xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<4xi1>, tensor<4xf64>
    %7 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<6x4xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<6x4xi1>
    %10 = stablehlo.select %9, %0#2, %8 : tensor<6x4xi1>, tensor<6x4xf64>
    %11 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x4xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<4x4xi1>
    %14 = stablehlo.select %13, %0#3, %12 : tensor<4x4xi1>, tensor<4x4xf64>
    return %10, %6, %14 : tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>
  }
  func.func private @_where_1(%arg0: tensor<4xi1>, %arg1: tensor<4xf64>, %arg2: tensor<f64>) -> tensor<4xf64> {
    %0 = stablehlo.convert %arg2 : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<4xi1>, tensor<4xf64>
    return %2 : tensor<4xf64>
  }
  func.func private @matrix_rank(%arg0: tensor<6x4xf64>) -> tensor<i64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<2.2204460492503131E-16> : tensor<f64>
    %cst_0 = stablehlo.constant dense<6.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = call @svd_2(%arg0) : (tensor<6x4xf64>) -> tensor<4xf64>
    %1 = stablehlo.reduce(%0 init: %cst_1) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
    %2 = stablehlo.multiply %1, %cst_0 : tensor<f64>
    %3 = stablehlo.multiply %2, %cst : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<1xf64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<1xf64>) -> tensor<4xf64>
    %6 = stablehlo.compare GT, %0, %5, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
    %7 = stablehlo.convert %6 : (tensor<4xi1>) -> tensor<4xi32>
    %8 = stablehlo.convert %7 : (tensor<4xi32>) -> tensor<4xi64>
    %9 = stablehlo.reduce(%8 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    return %9 : tensor<i64>
  }
  func.func private @svd_2(%arg0: tensor<6x4xf64>) -> tensor<4xf64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%arg0) {mhlo.backend_config = {mode = 78 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], [n, o], [p, q], []) {i=6, j=4, k=6, l=4, m=4, n=6, o=4, p=4, q=4}, custom>} : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<6x4xf64>, tensor<4x4xf64>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %2 = stablehlo.compare EQ, %0#4, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1xi1>) -> tensor<4xi1>
    %6 = stablehlo.select %5, %0#1, %4 : tensor<4xi1>, tensor<4xf64>
    return %6 : tensor<4xf64>
  }
  func.func private @_lstsq(%arg0: tensor<6x4xf64>, %arg1: tensor<6xf64>) -> tensor<4xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %c_0 = stablehlo.constant dense<1> : tensor<i64>
    %cst_1 = stablehlo.constant dense<1.3322676295501878E-15> : tensor<f64>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<6xf64>) -> tensor<6x1xf64>
    %1:3 = call @svd(%arg0) : (tensor<6x4xf64>) -> (tensor<6x4xf64>, tensor<4xf64>, tensor<4x4xf64>)
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %3 = stablehlo.compare GT, %1#1, %2, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
    %4 = stablehlo.slice %1#1 [0:1] : (tensor<4xf64>) -> tensor<1xf64>
    %5 = stablehlo.reshape %4 : (tensor<1xf64>) -> tensor<f64>
    %6 = stablehlo.multiply %cst_1, %5 : tensor<f64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %8 = stablehlo.compare GE, %1#1, %7, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
    %9 = stablehlo.and %3, %8 : tensor<4xi1>
    %10 = call @_where_3(%9, %1#1, %c_0) : (tensor<4xi1>, tensor<4xf64>, tensor<i64>) -> tensor<4xf64>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %12 = stablehlo.divide %11, %10 : tensor<4xf64>
    %13 = call @_where_3(%9, %12, %c) : (tensor<4xi1>, tensor<4xf64>, tensor<i64>) -> tensor<4xf64>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %15 = stablehlo.transpose %1#0, dims = [1, 0] : (tensor<6x4xf64>) -> tensor<4x6xf64>
    %16 = stablehlo.dot_general %15, %0, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x6xf64>, tensor<6x1xf64>) -> tensor<4x1xf64>
    %17 = stablehlo.transpose %1#2, dims = [1, 0] : (tensor<4x4xf64>) -> tensor<4x4xf64>
    %18 = stablehlo.multiply %14, %16 : tensor<4x1xf64>
    %19 = stablehlo.dot_general %17, %18, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<4x4xf64>, tensor<4x1xf64>) -> tensor<4x1xf64>
    %20 = stablehlo.reshape %19 : (tensor<4x1xf64>) -> tensor<4xf64>
    return %20 : tensor<4xf64>
  }
  func.func private @_where_3(%arg0: tensor<4xi1>, %arg1: tensor<4xf64>, %arg2: tensor<i64>) -> tensor<4xf64> {
    %0 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<4xi1>, tensor<4xf64>
    return %2 : tensor<4xf64>
  }
}
