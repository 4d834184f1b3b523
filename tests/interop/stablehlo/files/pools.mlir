module @jit_pools attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8x6xf64>) -> (tensor<2x3x4x3xf64> {jax.result_info = "result[0]"}, tensor<2x3x3x3xf64> {jax.result_info = "result[1]"}, tensor<2x3x6x5xf64> {jax.result_info = "result[2]"}, tensor<2x3x8x11xf64> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [0, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %7 = stablehlo.maximum %arg1, %arg2 : tensor<f64>
      stablehlo.return %7 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x4x3xf64>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<f64>
    %3 = "stablehlo.reduce_window"(%arg0, %2) <{window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %7 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %7 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x3x3xf64>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<f64>
    %5 = "stablehlo.reduce_window"(%arg0, %4) <{window_dilations = array<i64: 1, 1, 2, 1>, window_dimensions = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %7 = stablehlo.minimum %arg1, %arg2 : tensor<f64>
      stablehlo.return %7 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x6x5xf64>
    %6 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1, 1, 1, 2>, padding = dense<[[0, 0], [0, 0], [0, 1], [2, 2]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 2, 5>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %7 = stablehlo.multiply %arg1, %arg2 : tensor<f64>
      stablehlo.return %7 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x8x11xf64>
    return %1, %3, %5, %6 : tensor<2x3x4x3xf64>, tensor<2x3x3x3xf64>, tensor<2x3x6x5xf64>, tensor<2x3x8x11xf64>
  }
}
