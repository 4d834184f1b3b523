module @jit_segments attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x3xf64>, %arg1: tensor<8xi64>) -> (tensor<5x3xf64> {jax.result_info = "result[0]"}, tensor<4x3xf64> {jax.result_info = "result[1]"}, tensor<4x3xf64> {jax.result_info = "result[2]"}, tensor<6xi64> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<6> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<5x3xf64>
    %1 = stablehlo.convert %arg1 : (tensor<8xi64>) -> tensor<8xi32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %3 = "stablehlo.scatter"(%0, %2, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %23 = stablehlo.add %arg2, %arg3 : tensor<f64>
      stablehlo.return %23 : tensor<f64>
    }) : (tensor<5x3xf64>, tensor<8x1xi32>, tensor<8x3xf64>) -> tensor<5x3xf64>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4x3xf64>
    %5 = stablehlo.convert %arg1 : (tensor<8xi64>) -> tensor<8xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %7 = "stablehlo.scatter"(%4, %6, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %23 = stablehlo.maximum %arg2, %arg3 : tensor<f64>
      stablehlo.return %23 : tensor<f64>
    }) : (tensor<4x3xf64>, tensor<8x1xi32>, tensor<8x3xf64>) -> tensor<4x3xf64>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x3xf64>
    %9 = stablehlo.convert %arg1 : (tensor<8xi64>) -> tensor<8xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %11 = "stablehlo.scatter"(%8, %10, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %23 = stablehlo.multiply %arg2, %arg3 : tensor<f64>
      stablehlo.return %23 : tensor<f64>
    }) : (tensor<4x3xf64>, tensor<8x1xi32>, tensor<8x3xf64>) -> tensor<4x3xf64>
    %12 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %13 = call @clip(%arg1, %c_1) : (tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
    %14 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %15 = stablehlo.compare LT, %13, %14, SIGNED : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
    %16 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %17 = stablehlo.add %13, %16 : tensor<8xi64>
    %18 = stablehlo.select %15, %17, %13 : tensor<8xi1>, tensor<8xi64>
    %19 = stablehlo.convert %18 : (tensor<8xi64>) -> tensor<8xi32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %21 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %22 = "stablehlo.scatter"(%12, %20, %21) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg2: tensor<i64>, %arg3: tensor<i64>):
      %23 = stablehlo.add %arg2, %arg3 : tensor<i64>
      stablehlo.return %23 : tensor<i64>
    }) : (tensor<6xi64>, tensor<8x1xi32>, tensor<8xi64>) -> tensor<6xi64>
    return %3, %7, %11, %22 : tensor<5x3xf64>, tensor<4x3xf64>, tensor<4x3xf64>, tensor<6xi64>
  }
  func.func private @clip(%arg0: tensor<8xi64>, %arg1: tensor<i64>) -> tensor<8xi64> {
    %0 = stablehlo.convert %arg1 : tensor<i64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i64>) -> tensor<8xi64>
    %2 = stablehlo.maximum %1, %arg0 : tensor<8xi64>
    return %2 : tensor<8xi64>
  }
}
