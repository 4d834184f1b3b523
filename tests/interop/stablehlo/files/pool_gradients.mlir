module @jit_pool_gradients attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3x8x6xf64>) -> (tensor<2x3x8x6xf64> {jax.result_info = "result[0]"}, tensor<2x3x8x6xf64> {jax.result_info = "result[1]"}, tensor<f64> {jax.result_info = "result[2][0]"}, tensor<f64> {jax.result_info = "result[2][1]"}) {
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_3 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [0, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.maximum %arg1, %arg2 : tensor<f64>
      stablehlo.return %30 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x4x3xf64>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<2x3x4x3xf64>
    %3 = stablehlo.multiply %2, %1 : tensor<2x3x4x3xf64>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<2x3x4x3xf64>
    %5 = stablehlo.multiply %4, %3 : tensor<2x3x4x3xf64>
    %6 = stablehlo.pad %arg0, %cst_3, low = [0, 0, 0, 0], high = [0, 0, 1, 0], interior = [0, 0, 0, 0] : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x9x6xf64>
    %7 = "stablehlo.select_and_scatter"(%6, %5, %cst_0) <{window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.compare GE, %arg1, %arg2, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %30 : tensor<i1>
    }, {
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %30 : tensor<f64>
    }) : (tensor<2x3x9x6xf64>, tensor<2x3x4x3xf64>, tensor<f64>) -> tensor<2x3x9x6xf64>
    %8 = stablehlo.slice %7 [0:2, 0:3, 0:8, 0:6] : (tensor<2x3x9x6xf64>) -> tensor<2x3x8x6xf64>
    %9 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<f64>
    %10 = "stablehlo.reduce_window"(%arg0, %9) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %30 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x4x3xf64>
    %11 = stablehlo.multiply %10, %10 : tensor<2x3x4x3xf64>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x3x4x3xf64>
    %13 = stablehlo.multiply %12, %11 : tensor<2x3x4x3xf64>
    %14 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<2x3x4x3xf64>
    %15 = stablehlo.multiply %14, %13 : tensor<2x3x4x3xf64>
    %16 = stablehlo.pad %15, %cst_0, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 1, 1] : (tensor<2x3x4x3xf64>, tensor<f64>) -> tensor<2x3x9x7xf64>
    %17 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<f64>
    %18 = "stablehlo.reduce_window"(%16, %17) <{window_dimensions = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %30 : tensor<f64>
    }) : (tensor<2x3x9x7xf64>, tensor<f64>) -> tensor<2x3x8x6xf64>
    %19 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<2x3x8x6xf64>
    %20 = stablehlo.multiply %arg0, %19 : tensor<2x3x8x6xf64>
    %21 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<f64>
    %22 = "stablehlo.reduce_window"(%arg0, %21) <{padding = dense<[[0, 0], [0, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %30 = stablehlo.maximum %arg1, %arg2 : tensor<f64>
      stablehlo.return %30 : tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<f64>) -> tensor<2x3x4x3xf64>
    %23:2 = "stablehlo.reduce_window"(%arg0, %20, %cst_3, %cst_0) <{padding = dense<[[0, 0], [0, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>, %arg3: tensor<f64>, %arg4: tensor<f64>):
      %30 = stablehlo.compare GE, %arg1, %arg3, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %31 = stablehlo.select %30, %arg1, %arg3 : tensor<i1>, tensor<f64>
      %32 = stablehlo.select %30, %arg2, %arg4 : tensor<i1>, tensor<f64>
      stablehlo.return %31, %32 : tensor<f64>, tensor<f64>
    }) : (tensor<2x3x8x6xf64>, tensor<2x3x8x6xf64>, tensor<f64>, tensor<f64>) -> (tensor<2x3x4x3xf64>, tensor<2x3x4x3xf64>)
    %24 = stablehlo.multiply %22, %22 : tensor<2x3x4x3xf64>
    %25 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<2x3x4x3xf64>
    %26 = stablehlo.multiply %25, %22 : tensor<2x3x4x3xf64>
    %27 = stablehlo.multiply %23#1, %26 : tensor<2x3x4x3xf64>
    %28 = stablehlo.reduce(%24 init: %cst_0) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x3x4x3xf64>, tensor<f64>) -> tensor<f64>
    %29 = stablehlo.reduce(%27 init: %cst_0) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x3x4x3xf64>, tensor<f64>) -> tensor<f64>
    return %8, %18, %28, %29 : tensor<2x3x8x6xf64>, tensor<2x3x8x6xf64>, tensor<f64>, tensor<f64>
  }
}
