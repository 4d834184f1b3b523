module @jit_lqr attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf64>, %arg1: tensor<4x4xf64>) -> (tensor<4xf64> {jax.result_info = "result[0][0]"}, tensor<8x4xf64> {jax.result_info = "result[0][1]"}, tensor<8x2x4xf64> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<8> : tensor<i64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.iota dim = 0 : tensor<4x4xi64>
    %1 = stablehlo.iota dim = 1 : tensor<4x4xi64>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<4x4xi64>
    %3 = stablehlo.add %0, %2 : tensor<4x4xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
    %5 = stablehlo.convert %4 : (tensor<4x4xi1>) -> tensor<4x4xf64>
    %6 = stablehlo.slice %5 [0:4, 0:2] : (tensor<4x4xf64>) -> tensor<4x2xf64>
    %7 = stablehlo.iota dim = 0 : tensor<4x4xi64>
    %8 = stablehlo.iota dim = 1 : tensor<4x4xi64>
    %9 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<4x4xi64>
    %10 = stablehlo.add %7, %9 : tensor<4x4xi64>
    %11 = stablehlo.compare EQ, %10, %8, SIGNED : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
    %12 = stablehlo.convert %11 : (tensor<4x4xi1>) -> tensor<4x4xf64>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8x2x4xf64>
    %14:5 = stablehlo.while(%iterArg = %6, %iterArg_2 = %arg1, %iterArg_3 = %c_1, %iterArg_4 = %12, %iterArg_5 = %13) : tensor<4x2xf64>, tensor<4x4xf64>, tensor<i64>, tensor<4x4xf64>, tensor<8x2x4xf64>
    cond {
      %18 = stablehlo.compare LT, %iterArg_3, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %18:2 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_4) : (tensor<4x2xf64>, tensor<4x4xf64>, tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<2x4xf64>)
      %19 = func.call @dynamic_update_index_in_dim(%iterArg_5, %18#1, %iterArg_3) : (tensor<8x2x4xf64>, tensor<2x4xf64>, tensor<i64>) -> tensor<8x2x4xf64>
      %20 = stablehlo.add %iterArg_3, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %20, %18#0, %19 : tensor<4x2xf64>, tensor<4x4xf64>, tensor<i64>, tensor<4x4xf64>, tensor<8x2x4xf64>
    }
    %15 = stablehlo.reverse %14#4, dims = [0] : tensor<8x2x4xf64>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<8x4xf64>
    %17:6 = stablehlo.while(%iterArg = %15, %iterArg_2 = %6, %iterArg_3 = %arg1, %iterArg_4 = %c_1, %iterArg_5 = %arg0, %iterArg_6 = %16) : tensor<8x2x4xf64>, tensor<4x2xf64>, tensor<4x4xf64>, tensor<i64>, tensor<4xf64>, tensor<8x4xf64>
    cond {
      %18 = stablehlo.compare LT, %iterArg_4, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    } do {
      %18 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_4) : (tensor<8x2x4xf64>, tensor<i64>) -> tensor<2x4xf64>
      %19:2 = func.call @closed_call_1(%iterArg_2, %iterArg_3, %iterArg_5, %18) : (tensor<4x2xf64>, tensor<4x4xf64>, tensor<4xf64>, tensor<2x4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
      %20 = func.call @dynamic_update_index_in_dim_2(%iterArg_6, %19#1, %iterArg_4) : (tensor<8x4xf64>, tensor<4xf64>, tensor<i64>) -> tensor<8x4xf64>
      %21 = stablehlo.add %iterArg_4, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %21, %19#0, %20 : tensor<8x2x4xf64>, tensor<4x2xf64>, tensor<4x4xf64>, tensor<i64>, tensor<4xf64>, tensor<8x4xf64>
    }
    return %17#4, %17#5, %14#4 : tensor<4xf64>, tensor<8x4xf64>, tensor<8x2x4xf64>
  }
  func.func private @closed_call(%arg0: tensor<4x2xf64>, %arg1: tensor<4x4xf64>, %arg2: tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<2x4xf64>) {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.iota dim = 0 : tensor<2x2xi64>
    %1 = stablehlo.iota dim = 1 : tensor<2x2xi64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<2x2xi64>
    %3 = stablehlo.add %0, %2 : tensor<2x2xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
    %5 = stablehlo.convert %4 : (tensor<2x2xi1>) -> tensor<2x2xf64>
    %6 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xf64>) -> tensor<2x4xf64>
    %7 = stablehlo.dot_general %6, %arg2, contracting_dims = [1] x [0] : (tensor<2x4xf64>, tensor<4x4xf64>) -> tensor<2x4xf64>
    %8 = stablehlo.dot_general %7, %arg0, contracting_dims = [1] x [0] : (tensor<2x4xf64>, tensor<4x2xf64>) -> tensor<2x2xf64>
    %9 = stablehlo.add %5, %8 : tensor<2x2xf64>
    %10 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x2xf64>) -> tensor<2x4xf64>
    %11 = stablehlo.dot_general %10, %arg2, contracting_dims = [1] x [0] : (tensor<2x4xf64>, tensor<4x4xf64>) -> tensor<2x4xf64>
    %12 = stablehlo.dot_general %11, %arg1, contracting_dims = [1] x [0] : (tensor<2x4xf64>, tensor<4x4xf64>) -> tensor<2x4xf64>
    %13 = call @solve(%9, %12) : (tensor<2x2xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
    %14 = stablehlo.iota dim = 0 : tensor<4x4xi64>
    %15 = stablehlo.iota dim = 1 : tensor<4x4xi64>
    %16 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4x4xi64>
    %17 = stablehlo.add %14, %16 : tensor<4x4xi64>
    %18 = stablehlo.compare EQ, %17, %15, SIGNED : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
    %19 = stablehlo.convert %18 : (tensor<4x4xi1>) -> tensor<4x4xf64>
    %20 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<4x4xf64>) -> tensor<4x4xf64>
    %21 = stablehlo.dot_general %20, %arg2, contracting_dims = [1] x [0] : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %22 = stablehlo.dot_general %arg0, %13, contracting_dims = [1] x [0] : (tensor<4x2xf64>, tensor<2x4xf64>) -> tensor<4x4xf64>
    %23 = stablehlo.subtract %arg1, %22 : tensor<4x4xf64>
    %24 = stablehlo.dot_general %21, %23, contracting_dims = [1] x [0] : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %25 = stablehlo.add %19, %24 : tensor<4x4xf64>
    return %25, %13 : tensor<4x4xf64>, tensor<2x4xf64>
  }
  func.func private @solve(%arg0: tensor<2x2xf64>, %arg1: tensor<2x4xf64>) -> tensor<2x4xf64> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<2> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%arg0) {mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=2, j=2, k=2, l=2, m=2}, custom>} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi32>, tensor<i32>)
    %1 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %2 = stablehlo.subtract %0#1, %1 : tensor<2xi32>
    %3 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<i32>
    %4 = stablehlo.compare GE, %0#2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x2xf64>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<2x2xi1>
    %8 = stablehlo.select %7, %0#0, %6 : tensor<2x2xi1>, tensor<2x2xf64>
    %9 = stablehlo.iota dim = 0 : tensor<2xi32>
    %10:4 = stablehlo.while(%iterArg = %2, %iterArg_4 = %c_1, %iterArg_5 = %c_1, %iterArg_6 = %9) : tensor<2xi32>, tensor<i64>, tensor<i64>, tensor<2xi32>
    cond {
      %14 = stablehlo.compare LT, %iterArg_4, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %14:2 = func.call @closed_call_0(%iterArg, %iterArg_5, %iterArg_6) : (tensor<2xi32>, tensor<i64>, tensor<2xi32>) -> (tensor<i64>, tensor<2xi32>)
      %15 = stablehlo.add %iterArg_4, %c : tensor<i64>
      stablehlo.return %iterArg, %15, %14#0, %14#1 : tensor<2xi32>, tensor<i64>, tensor<i64>, tensor<2xi32>
    }
    %11 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<2x4xf64>) -> tensor<4x2xf64>
    %12 = call @_lu_solve(%8, %10#3, %11) : (tensor<2x2xf64>, tensor<2xi32>, tensor<4x2xf64>) -> tensor<4x2xf64>
    %13 = stablehlo.transpose %12, dims = [1, 0] : (tensor<4x2xf64>) -> tensor<2x4xf64>
    return %13 : tensor<2x4xf64>
  }
  func.func private @closed_call_0(%arg0: tensor<2xi32>, %arg1: tensor<i64>, %arg2: tensor<2xi32>) -> (tensor<i64>, tensor<2xi32>) {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg1, %c_3 : tensor<i64>
    %1 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = stablehlo.convert %arg1 : tensor<i64>
    %3 = stablehlo.add %2, %c_1 : tensor<i64>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<i1>, tensor<i64>
    %5 = stablehlo.dynamic_slice %arg0, %4, sizes = [1] : (tensor<2xi32>, tensor<i64>) -> tensor<1xi32>
    %6 = stablehlo.reshape %5 : (tensor<1xi32>) -> tensor<i32>
    %7 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %8 = stablehlo.convert %arg1 : tensor<i64>
    %9 = stablehlo.add %8, %c_1 : tensor<i64>
    %10 = stablehlo.select %7, %9, %arg1 : tensor<i1>, tensor<i64>
    %11 = stablehlo.dynamic_slice %arg2, %10, sizes = [1] : (tensor<2xi32>, tensor<i64>) -> tensor<1xi32>
    %12 = stablehlo.reshape %11 : (tensor<1xi32>) -> tensor<i32>
    %13 = stablehlo.compare LT, %6, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %14 = stablehlo.add %6, %c : tensor<i32>
    %15 = stablehlo.select %13, %14, %6 : tensor<i1>, tensor<i32>
    %16 = stablehlo.dynamic_slice %arg2, %15, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %17 = stablehlo.reshape %16 : (tensor<1xi32>) -> tensor<i32>
    %18 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %19 = stablehlo.add %arg1, %c_1 : tensor<i64>
    %20 = stablehlo.select %18, %19, %arg1 : tensor<i1>, tensor<i64>
    %21 = stablehlo.convert %20 : (tensor<i64>) -> tensor<i32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %23 = "stablehlo.scatter"(%arg2, %22, %17) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<2xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    %24 = stablehlo.compare LT, %6, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %25 = stablehlo.add %6, %c : tensor<i32>
    %26 = stablehlo.select %24, %25, %6 : tensor<i1>, tensor<i32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %28 = "stablehlo.scatter"(%23, %27, %12) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<2xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    return %0, %28 : tensor<i64>, tensor<2xi32>
  }
  func.func private @_lu_solve(%arg0: tensor<2x2xf64>, %arg1: tensor<2xi32>, %arg2: tensor<4x2xf64>) -> tensor<4x2xf64> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<4x2xf64>) -> tensor<4x2x1xf64>
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %2 = stablehlo.compare LT, %arg1, %1, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %4 = stablehlo.add %arg1, %3 : tensor<2xi32>
    %5 = stablehlo.select %2, %4, %arg1 : tensor<2xi1>, tensor<2xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %7 = "stablehlo.gather"(%0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 4, 1, 1>}> : (tensor<4x2x1xf64>, tensor<2x1xi32>) -> tensor<4x2x1xf64>
    %8 = stablehlo.transpose %7, dims = [1, 2, 0] : (tensor<4x2x1xf64>) -> tensor<2x1x4xf64>
    %9 = stablehlo.reshape %8 : (tensor<2x1x4xf64>) -> tensor<2x4xf64>
    %10 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %9) {mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=2, j=2, k=2, l=4, m=2, n=4}, custom>} : (tensor<2x2xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
    %11 = stablehlo.reshape %10 : (tensor<2x4xf64>) -> tensor<2x1x4xf64>
    %12 = stablehlo.reshape %11 : (tensor<2x1x4xf64>) -> tensor<2x4xf64>
    %13 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %12) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=2, j=2, k=2, l=4, m=2, n=4}, custom>} : (tensor<2x2xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
    %14 = stablehlo.reshape %13 : (tensor<2x4xf64>) -> tensor<2x1x4xf64>
    %15 = stablehlo.transpose %14, dims = [2, 0, 1] : (tensor<2x1x4xf64>) -> tensor<4x2x1xf64>
    %16 = stablehlo.reshape %15 : (tensor<4x2x1xf64>) -> tensor<4x2xf64>
    return %16 : tensor<4x2xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<8x2x4xf64>, %arg1: tensor<2x4xf64>, %arg2: tensor<i64>) -> tensor<8x2x4xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<2x4xf64>) -> tensor<1x2x4xf64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c : (tensor<8x2x4xf64>, tensor<1x2x4xf64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<8x2x4xf64>
    return %1 : tensor<8x2x4xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<8x2x4xf64>, %arg1: tensor<i64>) -> tensor<2x4xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c, sizes = [1, 2, 4] : (tensor<8x2x4xf64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x2x4xf64>
    %1 = stablehlo.reshape %0 : (tensor<1x2x4xf64>) -> tensor<2x4xf64>
    return %1 : tensor<2x4xf64>
  }
  func.func private @closed_call_1(%arg0: tensor<4x2xf64>, %arg1: tensor<4x4xf64>, %arg2: tensor<4xf64>, %arg3: tensor<2x4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
    %0 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [1] x [0] : (tensor<4x2xf64>, tensor<2x4xf64>) -> tensor<4x4xf64>
    %1 = stablehlo.subtract %arg1, %0 : tensor<4x4xf64>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<4x4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %2, %arg2 : tensor<4xf64>, tensor<4xf64>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<8x4xf64>, %arg1: tensor<4xf64>, %arg2: tensor<i64>) -> tensor<8x4xf64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf64>) -> tensor<1x4xf64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<8x4xf64>, tensor<1x4xf64>, tensor<i64>, tensor<i64>) -> tensor<8x4xf64>
    return %1 : tensor<8x4xf64>
  }
}
