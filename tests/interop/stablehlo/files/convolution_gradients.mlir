module @jit_convolution_gradients attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x6x5xf64>, %arg1: tensor<6x2x3x3xf64>) -> (tensor<2x4x6x5xf64> {jax.result_info = "result[0]"}, tensor<6x2x3x3xf64> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x6x5xf64>, tensor<6x2x3x3xf64>) -> tensor<2x6x3x5xf64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<2x6x3x5xf64>
    %2 = stablehlo.multiply %1, %0 : tensor<2x6x3x5xf64>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x6x3x5xf64>
    %4 = stablehlo.multiply %3, %2 : tensor<2x6x3x5xf64>
    %5 = stablehlo.convolution(%arg0, %4) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1], window = {pad = [[0, 1], [1, 1]], rhs_dilate = [2, 1]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<2x4x6x5xf64>, tensor<2x6x3x5xf64>) -> tensor<6x2x3x3xf64>
    %6 = stablehlo.reshape %arg1 : (tensor<6x2x3x3xf64>) -> tensor<2x3x2x3x3xf64>
    %7 = stablehlo.transpose %6, dims = [1, 0, 2, 3, 4] : (tensor<2x3x2x3x3xf64>) -> tensor<3x2x2x3x3xf64>
    %8 = stablehlo.reshape %7 : (tensor<3x2x2x3x3xf64>) -> tensor<3x4x3x3xf64>
    %9 = stablehlo.reverse %8, dims = [2, 3] : tensor<3x4x3x3xf64>
    %10 = stablehlo.convolution(%4, %9) dim_numbers = [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1], window = {pad = [[2, 1], [1, 1]], lhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x3x5xf64>, tensor<3x4x3x3xf64>) -> tensor<2x4x6x5xf64>
    return %10, %5 : tensor<2x4x6x5xf64>, tensor<6x2x3x3xf64>
  }
}
