module @jit_einsums attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4x5xf64>, %arg1: tensor<5x4x2xf64>) -> (tensor<3x2xf64> {jax.result_info = "result[0]"}, tensor<4x2x3xf64> {jax.result_info = "result[1]"}, tensor<3x4x4x2xf64> {jax.result_info = "result[2]"}, tensor<f64> {jax.result_info = "result[3]"}, tensor<5x2xf64> {jax.result_info = "result[4]"}, tensor<3x2xi64> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<[[24, 15], [4, 3], [11, 4]]> : tensor<3x2xi64>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1, 2] x [1, 0] : (tensor<3x4x5xf64>, tensor<5x4x2xf64>) -> tensor<3x2xf64>
    %1 = stablehlo.dot_general %arg1, %arg0, batching_dims = [1] x [1], contracting_dims = [0] x [2] : (tensor<5x4x2xf64>, tensor<3x4x5xf64>) -> tensor<4x2x3xf64>
    %2 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0] : (tensor<3x4x5xf64>, tensor<5x4x2xf64>) -> tensor<3x4x4x2xf64>
    %3 = stablehlo.reshape %arg0 : (tensor<3x4x5xf64>) -> tensor<60xf64>
    %4 = stablehlo.reshape %arg0 : (tensor<3x4x5xf64>) -> tensor<60xf64>
    %5 = stablehlo.dot_general %3, %4, contracting_dims = [0] x [0] : (tensor<60xf64>, tensor<60xf64>) -> tensor<f64>
    %6 = stablehlo.slice %arg0 [0:1, 0:1, 0:5] : (tensor<3x4x5xf64>) -> tensor<1x1x5xf64>
    %7 = stablehlo.reshape %6 : (tensor<1x1x5xf64>) -> tensor<5xf64>
    %8 = stablehlo.slice %arg1 [0:1, 0:1, 0:2] : (tensor<5x4x2xf64>) -> tensor<1x1x2xf64>
    %9 = stablehlo.reshape %8 : (tensor<1x1x2xf64>) -> tensor<2xf64>
    %10 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<5xf64>) -> tensor<5x1xf64>
    %11 = stablehlo.broadcast_in_dim %9, dims = [1] : (tensor<2xf64>) -> tensor<1x2xf64>
    %12 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<5x1xf64>) -> tensor<5x2xf64>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<1x2xf64>) -> tensor<5x2xf64>
    %14 = stablehlo.multiply %12, %13 : tensor<5x2xf64>
    return %0, %1, %2, %5, %14, %c : tensor<3x2xf64>, tensor<4x2x3xf64>, tensor<3x4x4x2xf64>, tensor<f64>, tensor<5x2xf64>, tensor<3x2xi64>
  }
}
