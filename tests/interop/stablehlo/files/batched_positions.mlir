module @jit_batched_positions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5x2xf64>, %arg1: tensor<4x2xi64>) -> (tensor<4x2x2xf64> {jax.result_info = "result[0]"}, tensor<4x5x2xf64> {jax.result_info = "result[1]"}, tensor<4x2x2xf64> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %c = stablehlo.constant dense<5> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4x2xi64>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<4x2xi64>, tensor<4x2xi64>) -> tensor<4x2xi1>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4x2xi64>
    %3 = stablehlo.add %arg1, %2 : tensor<4x2xi64>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<4x2xi1>, tensor<4x2xi64>
    %5 = stablehlo.convert %4 : (tensor<4x2xi64>) -> tensor<4x2xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x2xi32>) -> tensor<4x2x1xi32>
    %7 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<4x5x2xf64>, tensor<4x2x1xi32>) -> tensor<4x2x2xf64>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4x2xi64>
    %9 = stablehlo.compare LT, %arg1, %8, SIGNED : (tensor<4x2xi64>, tensor<4x2xi64>) -> tensor<4x2xi1>
    %10 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4x2xi64>
    %11 = stablehlo.add %arg1, %10 : tensor<4x2xi64>
    %12 = stablehlo.select %9, %11, %arg1 : tensor<4x2xi1>, tensor<4x2xi64>
    %13 = stablehlo.convert %12 : (tensor<4x2xi64>) -> tensor<4x2xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<4x2xi32>) -> tensor<4x2x1xi32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x2xf64>
    %16 = stablehlo.broadcast_in_dim %15, dims = [1, 2] : (tensor<2x2xf64>) -> tensor<4x2x2xf64>
    %17 = "stablehlo.scatter"(%arg0, %14, %16) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %29 = stablehlo.add %arg2, %arg3 : tensor<f64>
      stablehlo.return %29 : tensor<f64>
    }) : (tensor<4x5x2xf64>, tensor<4x2x1xi32>, tensor<4x2x2xf64>) -> tensor<4x5x2xf64>
    %18 = stablehlo.slice %arg1 [0:4, 0:1] : (tensor<4x2xi64>) -> tensor<4x1xi64>
    %19 = stablehlo.reshape %18 : (tensor<4x1xi64>) -> tensor<4xi64>
    %20 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %21 = stablehlo.compare LT, %19, %20, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %22 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %23 = stablehlo.add %19, %22 : tensor<4xi64>
    %24 = stablehlo.select %21, %23, %19 : tensor<4xi1>, tensor<4xi64>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<4xi64>) -> tensor<4x1xi64>
    %26 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4x1xi64>
    %27 = stablehlo.concatenate %25, %26, dim = 1 : (tensor<4x1xi64>, tensor<4x1xi64>) -> tensor<4x2xi64>
    %28 = "stablehlo.gather"(%arg0, %27) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1, 2], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 2, 2>}> : (tensor<4x5x2xf64>, tensor<4x2xi64>) -> tensor<4x2x2xf64>
    return %7, %17, %28 : tensor<4x2x2xf64>, tensor<4x5x2xf64>, tensor<4x2x2xf64>
  }
}
