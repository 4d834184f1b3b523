module @jit_matrix_gradients attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x5xf64>, %arg1: tensor<5xf64>) -> (tensor<5x5xf64> {jax.result_info = "result[0]"}, tensor<5x5xf64> {jax.result_info = "result[1]"}, tensor<5x5xf64> {jax.result_info = "result[2]"}, tensor<5x5xf64> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0:3 = call @slogdet(%arg0) : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xi1>)
    %1 = call @slogdet_0(%arg0, %0#0, %0#1, %0#2, %cst_1) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xi1>, tensor<f64>) -> tensor<5x5xf64>
    %2:4 = call @cholesky(%arg0) : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xi1>)
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %4 = call @cholesky_3(%2#0, %2#1, %2#2, %2#3, %3) : (tensor<5x5xf64>, tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xi1>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %5:3 = call @solve_4(%arg0, %arg1) : (tensor<5x5xf64>, tensor<5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5xi32>)
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %7 = stablehlo.multiply %6, %5#0 : tensor<5xf64>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %9 = stablehlo.multiply %8, %7 : tensor<5xf64>
    %10 = call @solve_6(%5#0, %arg0, %5#1, %5#2, %9) : (tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5xi32>, tensor<5xf64>) -> tensor<5x5xf64>
    %11:4 = call @eigvalsh(%arg0) : (tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>)
    %12 = stablehlo.multiply %11#0, %11#0 : tensor<5xf64>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %14 = stablehlo.multiply %13, %12 : tensor<5xf64>
    %15 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %16 = stablehlo.multiply %15, %14 : tensor<5xf64>
    %17 = call @eigvalsh_8(%11#1, %11#2, %11#3, %16) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>, tensor<5xf64>) -> tensor<5x5xf64>
    return %1, %4, %10, %17 : tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>
  }
  func.func private @slogdet(%arg0: tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xi1>) {
    %0:2 = call @solve(%arg0) : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>)
    %1 = call @trace() : () -> tensor<5x5xi1>
    return %0#0, %0#1, %1 : tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xi1>
  }
  func.func private @solve(%arg0: tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%arg0) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %2 = stablehlo.subtract %0#1, %1 : tensor<5xi32>
    %3 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<i32>
    %4 = stablehlo.compare GE, %0#2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %8 = stablehlo.select %7, %0#0, %6 : tensor<5x5xi1>, tensor<5x5xf64>
    %9 = stablehlo.iota dim = 0 : tensor<5xi32>
    %10:4 = stablehlo.while(%iterArg = %2, %iterArg_4 = %c_1, %iterArg_5 = %c_1, %iterArg_6 = %9) : tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>
    cond {
      %11 = stablehlo.compare LT, %iterArg_4, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %11:2 = func.call @closed_call(%iterArg, %iterArg_5, %iterArg_6) : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %12 = stablehlo.add %iterArg_4, %c : tensor<i64>
      stablehlo.return %iterArg, %12, %11#0, %11#1 : tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>
    }
    return %8, %10#3 : tensor<5x5xf64>, tensor<5xi32>
  }
  func.func private @closed_call(%arg0: tensor<5xi32>, %arg1: tensor<i64>, %arg2: tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>) {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<5> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg1, %c_3 : tensor<i64>
    %1 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = stablehlo.convert %arg1 : tensor<i64>
    %3 = stablehlo.add %2, %c_1 : tensor<i64>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<i1>, tensor<i64>
    %5 = stablehlo.dynamic_slice %arg0, %4, sizes = [1] : (tensor<5xi32>, tensor<i64>) -> tensor<1xi32>
    %6 = stablehlo.reshape %5 : (tensor<1xi32>) -> tensor<i32>
    %7 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %8 = stablehlo.convert %arg1 : tensor<i64>
    %9 = stablehlo.add %8, %c_1 : tensor<i64>
    %10 = stablehlo.select %7, %9, %arg1 : tensor<i1>, tensor<i64>
    %11 = stablehlo.dynamic_slice %arg2, %10, sizes = [1] : (tensor<5xi32>, tensor<i64>) -> tensor<1xi32>
    %12 = stablehlo.reshape %11 : (tensor<1xi32>) -> tensor<i32>
    %13 = stablehlo.compare LT, %6, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %14 = stablehlo.add %6, %c : tensor<i32>
    %15 = stablehlo.select %13, %14, %6 : tensor<i1>, tensor<i32>
    %16 = stablehlo.dynamic_slice %arg2, %15, sizes = [1] : (tensor<5xi32>, tensor<i32>) -> tensor<1xi32>
    %17 = stablehlo.reshape %16 : (tensor<1xi32>) -> tensor<i32>
    %18 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %19 = stablehlo.add %arg1, %c_1 : tensor<i64>
    %20 = stablehlo.select %18, %19, %arg1 : tensor<i1>, tensor<i64>
    %21 = stablehlo.convert %20 : (tensor<i64>) -> tensor<i32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %23 = "stablehlo.scatter"(%arg2, %22, %17) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<5xi32>, tensor<1xi32>, tensor<i32>) -> tensor<5xi32>
    %24 = stablehlo.compare LT, %6, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %25 = stablehlo.add %6, %c : tensor<i32>
    %26 = stablehlo.select %24, %25, %6 : tensor<i1>, tensor<i32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %28 = "stablehlo.scatter"(%23, %27, %12) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<5xi32>, tensor<1xi32>, tensor<i32>) -> tensor<5xi32>
    return %0, %28 : tensor<i64>, tensor<5xi32>
  }
  func.func private @trace() -> tensor<5x5xi1> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %1 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %3 = stablehlo.add %0, %2 : tensor<5x5xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    return %4 : tensor<5x5xi1>
  }
  func.func private @slogdet_0(%arg0: tensor<5x5xf64>, %arg1: tensor<5x5xf64>, %arg2: tensor<5xi32>, %arg3: tensor<5x5xi1>, %arg4: tensor<f64>) -> tensor<5x5xf64> {
    %0 = call @trace_1(%arg3, %arg4) : (tensor<5x5xi1>, tensor<f64>) -> tensor<5x5xf64>
    %1 = call @solve_2(%arg0, %arg1, %arg2, %0) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xf64>) -> tensor<5x5xf64>
    return %1 : tensor<5x5xf64>
  }
  func.func private @trace_1(%arg0: tensor<5x5xi1>, %arg1: tensor<f64>) -> tensor<5x5xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %1 = call @_where(%arg0, %0) : (tensor<5x5xi1>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    return %2 : tensor<5x5xf64>
  }
  func.func private @_where(%arg0: tensor<5x5xi1>, %arg1: tensor<5x5xf64>) -> tensor<5x5xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<5x5xi1>, tensor<5x5xf64>
    return %1 : tensor<5x5xf64>
  }
  func.func private @solve_2(%arg0: tensor<5x5xf64>, %arg1: tensor<5x5xf64>, %arg2: tensor<5xi32>, %arg3: tensor<5x5xf64>) -> tensor<5x5xf64> {
    %0 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %1 = call @_lu_solve(%arg1, %arg2, %0) : (tensor<5x5xf64>, tensor<5xi32>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    return %2 : tensor<5x5xf64>
  }
  func.func private @_lu_solve(%arg0: tensor<5x5xf64>, %arg1: tensor<5xi32>, %arg2: tensor<5x5xf64>) -> tensor<5x5xf64> {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<5x5xf64>) -> tensor<5x5x1xf64>
    %1 = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<5x5x1xf64>) -> tensor<5x1x5xf64>
    %2 = stablehlo.reshape %1 : (tensor<5x1x5xf64>) -> tensor<5x5xf64>
    %3 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %2) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %4 = stablehlo.reshape %3 : (tensor<5x5xf64>) -> tensor<5x1x5xf64>
    %5 = stablehlo.reshape %4 : (tensor<5x1x5xf64>) -> tensor<5x5xf64>
    %6 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %5) {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %7 = stablehlo.reshape %6 : (tensor<5x5xf64>) -> tensor<5x1x5xf64>
    %8 = stablehlo.iota dim = 0 : tensor<5xi32>
    %9:2 = "stablehlo.sort"(%arg1, %8) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
      %19 = stablehlo.compare LT, %arg3, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %19 : tensor<i1>
    }) : (tensor<5xi32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)
    %10 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %11 = stablehlo.compare LT, %9#1, %10, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %12 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %13 = stablehlo.add %9#1, %12 : tensor<5xi32>
    %14 = stablehlo.select %11, %13, %9#1 : tensor<5xi1>, tensor<5xi32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %16 = stablehlo.transpose %7, dims = [2, 0, 1] : (tensor<5x1x5xf64>) -> tensor<5x5x1xf64>
    %17 = "stablehlo.gather"(%16, %15) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 5, 1, 1>}> : (tensor<5x5x1xf64>, tensor<5x1xi32>) -> tensor<5x5x1xf64>
    %18 = stablehlo.reshape %17 : (tensor<5x5x1xf64>) -> tensor<5x5xf64>
    return %18 : tensor<5x5xf64>
  }
  func.func private @cholesky(%arg0: tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xi1>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %cst_1 = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<5x5xf64>
    %2 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %3 = stablehlo.divide %1, %2 : tensor<5x5xf64>
    %4:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%3) {mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {i=5, j=5, k=5, l=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<i32>)
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<i32>
    %6 = stablehlo.compare EQ, %4#1, %5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %10 = stablehlo.select %9, %4#0, %8 : tensor<5x5xi1>, tensor<5x5xf64>
    %11 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %12 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %13 = stablehlo.add %11, %12 : tensor<5x5xi64>
    %14 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %15 = stablehlo.compare GE, %13, %14, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %16 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %17 = stablehlo.select %15, %10, %16 : tensor<5x5xi1>, tensor<5x5xf64>
    %18 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %19 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %20 = stablehlo.add %18, %19 : tensor<5x5xi64>
    %21 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %22 = stablehlo.compare GE, %20, %21, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    %23 = stablehlo.iota dim = 0 : tensor<5x5xi32>
    %24 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<5x5xi32>
    %25 = stablehlo.add %23, %24 : tensor<5x5xi32>
    %26 = stablehlo.iota dim = 1 : tensor<5x5xi32>
    %27 = stablehlo.compare EQ, %25, %26, SIGNED : (tensor<5x5xi32>, tensor<5x5xi32>) -> tensor<5x5xi1>
    %28 = stablehlo.convert %27 : (tensor<5x5xi1>) -> tensor<5x5xf64>
    %29 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %30 = stablehlo.add %29, %28 : tensor<5x5xf64>
    %31 = stablehlo.iota dim = 0 : tensor<5x5xi64>
    %32 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<5x5xi64>
    %33 = stablehlo.add %31, %32 : tensor<5x5xi64>
    %34 = stablehlo.iota dim = 1 : tensor<5x5xi64>
    %35 = stablehlo.compare GE, %33, %34, SIGNED : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
    return %17, %22, %30, %35 : tensor<5x5xf64>, tensor<5x5xi1>, tensor<5x5xf64>, tensor<5x5xi1>
  }
  func.func private @cholesky_3(%arg0: tensor<5x5xf64>, %arg1: tensor<5x5xi1>, %arg2: tensor<5x5xf64>, %arg3: tensor<5x5xi1>, %arg4: tensor<5x5xf64>) -> tensor<5x5xf64> {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %1 = stablehlo.select %arg3, %arg4, %0 : tensor<5x5xi1>, tensor<5x5xf64>
    %2 = stablehlo.dot_general %1, %arg0, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %4 = stablehlo.divide %3, %arg2 : tensor<5x5xf64>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %6 = stablehlo.select %arg1, %4, %5 : tensor<5x5xi1>, tensor<5x5xf64>
    %7 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %6) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %8 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %7) {mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=5, m=5, n=5}, custom>} : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %10 = stablehlo.divide %8, %9 : tensor<5x5xf64>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %12 = stablehlo.add %10, %11 : tensor<5x5xf64>
    return %12 : tensor<5x5xf64>
  }
  func.func private @solve_4(%arg0: tensor<5x5xf64>, %arg1: tensor<5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5xi32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<5> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%arg0) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xi32>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %2 = stablehlo.subtract %0#1, %1 : tensor<5xi32>
    %3 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<i32>
    %4 = stablehlo.compare GE, %0#2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %8 = stablehlo.select %7, %0#0, %6 : tensor<5x5xi1>, tensor<5x5xf64>
    %9 = stablehlo.iota dim = 0 : tensor<5xi32>
    %10:4 = stablehlo.while(%iterArg = %2, %iterArg_4 = %c_1, %iterArg_5 = %c_1, %iterArg_6 = %9) : tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>
    cond {
      %12 = stablehlo.compare LT, %iterArg_4, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %12 : tensor<i1>
    } do {
      %12:2 = func.call @closed_call(%iterArg, %iterArg_5, %iterArg_6) : (tensor<5xi32>, tensor<i64>, tensor<5xi32>) -> (tensor<i64>, tensor<5xi32>)
      %13 = stablehlo.add %iterArg_4, %c : tensor<i64>
      stablehlo.return %iterArg, %13, %12#0, %12#1 : tensor<5xi32>, tensor<i64>, tensor<i64>, tensor<5xi32>
    }
    %11 = call @_lu_solve_5(%8, %10#3, %arg1) : (tensor<5x5xf64>, tensor<5xi32>, tensor<5xf64>) -> tensor<5xf64>
    return %11, %8, %10#3 : tensor<5xf64>, tensor<5x5xf64>, tensor<5xi32>
  }
  func.func private @_lu_solve_5(%arg0: tensor<5x5xf64>, %arg1: tensor<5xi32>, %arg2: tensor<5xf64>) -> tensor<5xf64> {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %2 = stablehlo.compare LT, %arg1, %1, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %4 = stablehlo.add %arg1, %3 : tensor<5xi32>
    %5 = stablehlo.select %2, %4, %arg1 : tensor<5xi1>, tensor<5xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %7 = "stablehlo.gather"(%0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x1xf64>, tensor<5x1xi32>) -> tensor<5x1xf64>
    %8 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %7) {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=1, m=5, n=1}, custom>} : (tensor<5x5xf64>, tensor<5x1xf64>) -> tensor<5x1xf64>
    %9 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %8) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=1, m=5, n=1}, custom>} : (tensor<5x5xf64>, tensor<5x1xf64>) -> tensor<5x1xf64>
    %10 = stablehlo.reshape %9 : (tensor<5x1xf64>) -> tensor<5xf64>
    return %10 : tensor<5xf64>
  }
  func.func private @solve_6(%arg0: tensor<5xf64>, %arg1: tensor<5x5xf64>, %arg2: tensor<5x5xf64>, %arg3: tensor<5xi32>, %arg4: tensor<5xf64>) -> tensor<5x5xf64> {
    %0 = call @_lu_solve_7(%arg2, %arg3, %arg4) : (tensor<5x5xf64>, tensor<5xi32>, tensor<5xf64>) -> tensor<5xf64>
    %1 = stablehlo.negate %0 : tensor<5xf64>
    %2 = stablehlo.dot_general %1, %arg0, contracting_dims = [] x [], precision = [HIGHEST, HIGHEST] : (tensor<5xf64>, tensor<5xf64>) -> tensor<5x5xf64>
    return %2 : tensor<5x5xf64>
  }
  func.func private @_lu_solve_7(%arg0: tensor<5x5xf64>, %arg1: tensor<5xi32>, %arg2: tensor<5xf64>) -> tensor<5xf64> {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %1 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %0) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=1, m=5, n=1}, custom>} : (tensor<5x5xf64>, tensor<5x1xf64>) -> tensor<5x1xf64>
    %2 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %1) {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=5, j=5, k=5, l=1, m=5, n=1}, custom>} : (tensor<5x5xf64>, tensor<5x1xf64>) -> tensor<5x1xf64>
    %3 = stablehlo.iota dim = 0 : tensor<5xi32>
    %4:2 = "stablehlo.sort"(%arg1, %3) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
      %13 = stablehlo.compare LT, %arg3, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    }) : (tensor<5xi32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %6 = stablehlo.compare LT, %4#1, %5, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %8 = stablehlo.add %4#1, %7 : tensor<5xi32>
    %9 = stablehlo.select %6, %8, %4#1 : tensor<5xi1>, tensor<5xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %11 = "stablehlo.gather"(%2, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<5x1xf64>, tensor<5x1xi32>) -> tensor<5x1xf64>
    %12 = stablehlo.reshape %11 : (tensor<5x1xf64>) -> tensor<5xf64>
    return %12 : tensor<5xf64>
  }
  func.func private @eigvalsh(%arg0: tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>) {
    %0:4 = call @eigh(%arg0) : (tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>)
    return %0#0, %0#2, %0#1, %0#3 : tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>
  }
  func.func private @eigh(%arg0: tensor<5x5xf64>) -> (tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>) {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<5x5xf64>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %3 = stablehlo.divide %1, %2 : tensor<5x5xf64>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %5 = stablehlo.add %3, %4 : tensor<5x5xf64>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %7 = stablehlo.divide %5, %6 : tensor<5x5xf64>
    %8:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%7) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=5, j=5, k=5, l=5, m=5}, custom>} : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xf64>, tensor<i32>)
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<i32>
    %10 = stablehlo.compare EQ, %8#2, %9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<5x5xi1>
    %14 = stablehlo.select %13, %8#0, %12 : tensor<5x5xi1>, tensor<5x5xf64>
    %15 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0] : (tensor<1xi1>) -> tensor<5xi1>
    %18 = stablehlo.select %17, %8#1, %16 : tensor<5xi1>, tensor<5xf64>
    %19 = stablehlo.transpose %14, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %20 = stablehlo.iota dim = 0 : tensor<5xi32>
    %21 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %22 = stablehlo.compare LT, %20, %21, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %23 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %24 = stablehlo.add %20, %23 : tensor<5xi32>
    %25 = stablehlo.select %22, %24, %20 : tensor<5xi1>, tensor<5xi32>
    %26 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %27 = stablehlo.compare LT, %20, %26, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %28 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %29 = stablehlo.add %20, %28 : tensor<5xi32>
    %30 = stablehlo.select %27, %29, %20 : tensor<5xi1>, tensor<5xi32>
    %31 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %32 = stablehlo.broadcast_in_dim %30, dims = [0] : (tensor<5xi32>) -> tensor<5x1xi32>
    %33 = stablehlo.concatenate %31, %32, dim = 1 : (tensor<5x1xi32>, tensor<5x1xi32>) -> tensor<5x2xi32>
    return %18, %14, %19, %33 : tensor<5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>
  }
  func.func private @eigvalsh_8(%arg0: tensor<5x5xf64>, %arg1: tensor<5x5xf64>, %arg2: tensor<5x2xi32>, %arg3: tensor<5xf64>) -> tensor<5x5xf64> {
    %0 = call @eigh_9(%arg0, %arg1, %arg2, %arg3) : (tensor<5x5xf64>, tensor<5x5xf64>, tensor<5x2xi32>, tensor<5xf64>) -> tensor<5x5xf64>
    return %0 : tensor<5x5xf64>
  }
  func.func private @eigh_9(%arg0: tensor<5x5xf64>, %arg1: tensor<5x5xf64>, %arg2: tensor<5x2xi32>, %arg3: tensor<5xf64>) -> tensor<5x5xf64> {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %1 = "stablehlo.scatter"(%0, %arg2, %arg3) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg4: tensor<f64>, %arg5: tensor<f64>):
      %9 = stablehlo.add %arg4, %arg5 : tensor<f64>
      stablehlo.return %9 : tensor<f64>
    }) : (tensor<5x5xf64>, tensor<5x2xi32>, tensor<5xf64>) -> tensor<5x5xf64>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %3 = stablehlo.dot_general %2, %arg0, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x5xf64>
    %6 = stablehlo.divide %4, %5 : tensor<5x5xf64>
    %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<5x5xf64>) -> tensor<5x5xf64>
    %8 = stablehlo.add %6, %7 : tensor<5x5xf64>
    return %8 : tensor<5x5xf64>
  }
}
