module @jit_conditions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf64>, %arg1: tensor<3x4xi1>, %arg2: tensor<3x4xi1>) -> (tensor<3x4xf64> {jax.result_info = "result[0]"}, tensor<3x4xi1> {jax.result_info = "result[1]"}, tensor<3x4xi1> {jax.result_info = "result[2]"}, tensor<3x4xi1> {jax.result_info = "result[3]"}, tensor<3x4xi1> {jax.result_info = "result[4]"}, tensor<3x4xi1> {jax.result_info = "result[5]"}, tensor<3x4xf64> {jax.result_info = "result[6]"}, tensor<3x4xf64> {jax.result_info = "result[7]"}, tensor<3x4xi1> {jax.result_info = "result[8]"}, tensor<3x4xi1> {jax.result_info = "result[9]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f64>
    %cst_1 = stablehlo.constant dense<-5.000000e-01> : tensor<f64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %c_3 = stablehlo.constant dense<1> : tensor<i64>
    %c_4 = stablehlo.constant dense<false> : tensor<i1>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %1 = stablehlo.multiply %0, %arg0 : tensor<3x4xf64>
    %2 = stablehlo.negate %arg0 : tensor<3x4xf64>
    %3 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i1>) -> tensor<3x4xi1>
    %4 = stablehlo.broadcast_in_dim %3, dims = [1, 2] : (tensor<3x4xi1>) -> tensor<1x3x4xi1>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x4xi1>) -> tensor<1x3x4xi1>
    %6 = stablehlo.broadcast_in_dim %arg2, dims = [1, 2] : (tensor<3x4xi1>) -> tensor<1x3x4xi1>
    %7 = stablehlo.concatenate %4, %5, %6, dim = 0 : (tensor<1x3x4xi1>, tensor<1x3x4xi1>, tensor<1x3x4xi1>) -> tensor<3x3x4xi1>
    %8 = call @argmax(%7) : (tensor<3x3x4xi1>) -> tensor<3x4xi64>
    %9 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i64>) -> tensor<3x4xi64>
    %10 = stablehlo.compare LT, %8, %9, SIGNED : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi1>
    %11 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3x4xi64>
    %12 = stablehlo.compare LT, %8, %11, SIGNED : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi1>
    %13 = stablehlo.select %12, %arg0, %1 : tensor<3x4xi1>, tensor<3x4xf64>
    %14 = stablehlo.select %10, %2, %13 : tensor<3x4xi1>, tensor<3x4xf64>
    %15 = stablehlo.and %arg1, %arg2 : tensor<3x4xi1>
    %16 = stablehlo.or %arg1, %arg2 : tensor<3x4xi1>
    %17 = stablehlo.xor %arg1, %arg2 : tensor<3x4xi1>
    %18 = stablehlo.not %arg1 : tensor<3x4xi1>
    %19 = stablehlo.compare EQ, %arg1, %arg2, UNSIGNED : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    %20 = call @_where(%arg1, %arg0, %c) : (tensor<3x4xi1>, tensor<3x4xf64>, tensor<i64>) -> tensor<3x4xf64>
    %21 = call @clip(%arg0, %cst_1, %cst_0) : (tensor<3x4xf64>, tensor<f64>, tensor<f64>) -> tensor<3x4xf64>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %23 = stablehlo.divide %arg0, %22 : tensor<3x4xf64>
    %24 = stablehlo.is_finite %23 : (tensor<3x4xf64>) -> tensor<3x4xi1>
    %25 = stablehlo.compare LT, %arg1, %arg2, UNSIGNED : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    return %14, %15, %16, %17, %18, %19, %20, %21, %24, %25 : tensor<3x4xf64>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf64>, tensor<3x4xf64>, tensor<3x4xi1>, tensor<3x4xi1>
  }
  func.func private @argmax(%arg0: tensor<3x3x4xi1>) -> tensor<3x4xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %0 = stablehlo.iota dim = 0 : tensor<3x3x4xi64>
    %1:2 = stablehlo.reduce(%arg0 init: %c_0), (%0 init: %c) across dimensions = [0] : (tensor<3x3x4xi1>, tensor<3x3x4xi64>, tensor<i1>, tensor<i64>) -> (tensor<3x4xi1>, tensor<3x4xi64>)
     reducer(%arg1: tensor<i1>, %arg3: tensor<i1>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<i1>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<i1>, tensor<i64>
    }
    return %1#1 : tensor<3x4xi64>
  }
  func.func private @_where(%arg0: tensor<3x4xi1>, %arg1: tensor<3x4xf64>, %arg2: tensor<i64>) -> tensor<3x4xf64> {
    %0 = stablehlo.convert %arg2 : (tensor<i64>) -> tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<3x4xi1>, tensor<3x4xf64>
    return %2 : tensor<3x4xf64>
  }
  func.func private @clip(%arg0: tensor<3x4xf64>, %arg1: tensor<f64>, %arg2: tensor<f64>) -> tensor<3x4xf64> {
    %0 = stablehlo.convert %arg1 : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %2 = stablehlo.maximum %1, %arg0 : tensor<3x4xf64>
    %3 = stablehlo.convert %arg2 : tensor<f64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %5 = stablehlo.minimum %4, %2 : tensor<3x4xf64>
    return %5 : tensor<3x4xf64>
  }
}
