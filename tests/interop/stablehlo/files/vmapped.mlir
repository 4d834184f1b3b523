module @jit_vmapped attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x8xf64>, %arg1: tensor<8xf64>, %arg2: tensor<8x3xf64>, %arg3: tensor<3xf64>, %arg4: tensor<5x6xf64>) -> (tensor<5x6xf64> {jax.result_info = "result[0]"}, tensor<5x6xf64> {jax.result_info = "result[1][0]"}, tensor<5x6xf64> {jax.result_info = "result[1][1]"}) {
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = stablehlo.dot_general %arg4, %arg0, contracting_dims = [1] x [0] : (tensor<5x6xf64>, tensor<6x8xf64>) -> tensor<5x8xf64>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf64>) -> tensor<1x8xf64>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x8xf64>) -> tensor<5x8xf64>
    %3 = stablehlo.add %0, %2 : tensor<5x8xf64>
    %4 = stablehlo.tanh %3 : tensor<5x8xf64>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x8xf64>
    %6 = stablehlo.subtract %5, %4 : tensor<5x8xf64>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0] : (tensor<5x8xf64>, tensor<8x3xf64>) -> tensor<5x3xf64>
    %8 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x3xf64>) -> tensor<5x3xf64>
    %10 = stablehlo.add %7, %9 : tensor<5x3xf64>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x3xf64>
    %12 = stablehlo.multiply %11, %10 : tensor<5x3xf64>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %14 = stablehlo.broadcast_in_dim %13, dims = [1] : (tensor<3xf64>) -> tensor<1x3xf64>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<1x3xf64>) -> tensor<5x3xf64>
    %16 = stablehlo.multiply %15, %12 : tensor<5x3xf64>
    %17 = stablehlo.dot_general %16, %arg2, contracting_dims = [1] x [1] : (tensor<5x3xf64>, tensor<8x3xf64>) -> tensor<5x8xf64>
    %18 = stablehlo.multiply %17, %6 : tensor<5x8xf64>
    %19 = stablehlo.multiply %18, %4 : tensor<5x8xf64>
    %20 = stablehlo.add %18, %19 : tensor<5x8xf64>
    %21 = stablehlo.dot_general %20, %arg0, contracting_dims = [1] x [1] : (tensor<5x8xf64>, tensor<6x8xf64>) -> tensor<5x6xf64>
    %22 = stablehlo.sine %arg4 : tensor<5x6xf64>
    %23 = stablehlo.cosine %arg4 : tensor<5x6xf64>
    %24 = stablehlo.multiply %arg4, %23 : tensor<5x6xf64>
    return %21, %22, %24 : tensor<5x6xf64>, tensor<5x6xf64>, tensor<5x6xf64>
  }
}
