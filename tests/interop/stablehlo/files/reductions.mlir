module @jit_reductions attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf64>) -> (tensor<f64> {jax.result_info = "result[0]"}, tensor<6xf64> {jax.result_info = "result[1]"}, tensor<4xf64> {jax.result_info = "result[2]"}, tensor<4xf64> {jax.result_info = "result[3]"}, tensor<f64> {jax.result_info = "result[4]"}, tensor<6xf64> {jax.result_info = "result[5]"}, tensor<4xi1> {jax.result_info = "result[6]"}, tensor<i1> {jax.result_info = "result[7]"}, tensor<4xf64> {jax.result_info = "result[8]"}, tensor<4xf64> {jax.result_info = "result[9]"}, tensor<f64> {jax.result_info = "result[10]"}, tensor<6xi64> {jax.result_info = "result[11]"}, tensor<6xf64> {jax.result_info = "result[12]"}, tensor<4xf64> {jax.result_info = "result[13][0]"}, tensor<4xf64> {jax.result_info = "result[13][1]"}, tensor<6xi64> {jax.result_info = "result[14]"}, tensor<6xi32> {jax.result_info = "result[15]"}, tensor<f64> {jax.result_info = "result[16]"}) {
    %cst = stablehlo.constant dense<1.500000e+00> : tensor<f64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_0 = stablehlo.constant dense<-9.000000e+00> : tensor<f64>
    %c_1 = stablehlo.constant dense<false> : tensor<i1>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_3 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %cst_4 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %c_5 = stablehlo.constant dense<0> : tensor<i64>
    %cst_6 = stablehlo.constant dense<4.000000e+00> : tensor<f64>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_7) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<f64>
    %1 = stablehlo.reduce(%arg0 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf64>, tensor<f64>) -> tensor<6xf64>
    %2 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f64>) -> tensor<6xf64>
    %3 = stablehlo.divide %1, %2 : tensor<6xf64>
    %4 = call @_var(%arg0, %c_5) : (tensor<4x6xf64>, tensor<i64>) -> tensor<4xf64>
    %5 = stablehlo.reduce(%arg0 init: %cst_4) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %6 = stablehlo.reduce(%arg0 init: %cst_3) applies stablehlo.minimum across dimensions = [0, 1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<f64>
    %7 = stablehlo.reduce(%arg0 init: %cst_2) applies stablehlo.multiply across dimensions = [0] : (tensor<4x6xf64>, tensor<f64>) -> tensor<6xf64>
    %8 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %9 = stablehlo.compare GT, %arg0, %8, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %10 = stablehlo.reduce(%9 init: %c_1) applies stablehlo.or across dimensions = [1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<4xi1>
    %11 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %12 = stablehlo.compare GT, %arg0, %11, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %13 = stablehlo.reduce(%12 init: %c) applies stablehlo.and across dimensions = [0, 1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<i1>
    %14 = call @norm(%arg0) : (tensor<4x6xf64>) -> tensor<4xf64>
    %15 = call @reduce(%arg0) : (tensor<4x6xf64>) -> tensor<4xf64>
    %16 = call @nanmax(%arg0) : (tensor<4x6xf64>) -> tensor<f64>
    %17 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %18 = stablehlo.compare GT, %arg0, %17, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %19 = call @count_nonzero(%18) : (tensor<4x6xi1>) -> tensor<6xi64>
    %20 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf64>, tensor<f64>) -> tensor<6xf64>
    %21:2 = stablehlo.reduce(%arg0 init: %cst_7), (%arg0 init: %cst_2) across dimensions = [1] : (tensor<4x6xf64>, tensor<4x6xf64>, tensor<f64>, tensor<f64>) -> (tensor<4xf64>, tensor<4xf64>)
     reducer(%arg1: tensor<f64>, %arg3: tensor<f64>) (%arg2: tensor<f64>, %arg4: tensor<f64>)  {
      %28 = stablehlo.add %arg1, %arg3 : tensor<f64>
      %29 = stablehlo.multiply %arg2, %arg4 : tensor<f64>
      stablehlo.return %28, %29 : tensor<f64>, tensor<f64>
    }
    %22 = stablehlo.convert %arg0 : (tensor<4x6xf64>) -> tensor<4x6xi32>
    %23 = stablehlo.convert %22 : (tensor<4x6xi32>) -> tensor<4x6xi64>
    %24 = stablehlo.reduce(%23 init: %c_5) applies stablehlo.add across dimensions = [0] : (tensor<4x6xi64>, tensor<i64>) -> tensor<6xi64>
    %25 = stablehlo.convert %arg0 : (tensor<4x6xf64>) -> tensor<4x6xi32>
    %26 = call @reduce_2(%25) : (tensor<4x6xi32>) -> tensor<6xi32>
    %27 = call @_ptp(%arg0) : (tensor<4x6xf64>) -> tensor<f64>
    return %0, %3, %4, %5, %6, %7, %10, %13, %14, %15, %16, %19, %20, %21#0, %21#1, %24, %26, %27 : tensor<f64>, tensor<6xf64>, tensor<4xf64>, tensor<4xf64>, tensor<f64>, tensor<6xf64>, tensor<4xi1>, tensor<i1>, tensor<4xf64>, tensor<4xf64>, tensor<f64>, tensor<6xi64>, tensor<6xf64>, tensor<4xf64>, tensor<4xf64>, tensor<6xi64>, tensor<6xi32>, tensor<f64>
  }
  func.func private @_var(%arg0: tensor<4x6xf64>, %arg1: tensor<i64>) -> tensor<4xf64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %cst_0 = stablehlo.constant dense<6.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x1xf64>
    %3 = stablehlo.divide %1, %2 : tensor<4x1xf64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf64>) -> tensor<4x6xf64>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x6xf64>
    %6 = stablehlo.multiply %5, %5 : tensor<4x6xf64>
    %7 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<f64>
    %8 = stablehlo.subtract %cst_0, %7 : tensor<f64>
    %9 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %10 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %11 = stablehlo.divide %9, %10 : tensor<4xf64>
    %12 = stablehlo.compare GT, %8, %cst_1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %13 = call @_where(%12, %11, %cst) : (tensor<i1>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
    return %13 : tensor<4xf64>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<4xf64>, %arg2: tensor<f64>) -> tensor<4xf64> {
    %0 = stablehlo.convert %arg2 : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<4xf64>
    return %2 : tensor<4xf64>
  }
  func.func private @norm(%arg0: tensor<4x6xf64>) -> tensor<4xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<4x6xf64>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.sqrt %1 : tensor<4xf64>
    return %2 : tensor<4xf64>
  }
  func.func private @reduce(%arg0: tensor<4x6xf64>) -> tensor<4xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %2 = stablehlo.maximum %1, %0 : tensor<4xf64>
    %3 = stablehlo.is_finite %2 : (tensor<4xf64>) -> tensor<4xi1>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %5 = stablehlo.select %3, %2, %4 : tensor<4xi1>, tensor<4xf64>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<4xf64>) -> tensor<4x1xf64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<4x1xf64>) -> tensor<4x6xf64>
    %8 = stablehlo.subtract %arg0, %7 : tensor<4x6xf64>
    %9 = stablehlo.exponential %8 : tensor<4x6xf64>
    %10 = stablehlo.reduce(%9 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<4xf64>
    %11 = stablehlo.log %10 : tensor<4xf64>
    %12 = stablehlo.add %11, %5 : tensor<4xf64>
    return %12 : tensor<4xf64>
  }
  func.func private @nanmax(%arg0: tensor<4x6xf64>) -> tensor<f64> {
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %cst_0 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %1 = call @_where_0(%0, %cst_0, %arg0) : (tensor<4x6xi1>, tensor<f64>, tensor<4x6xf64>) -> tensor<4x6xf64>
    %2 = stablehlo.reduce(%1 init: %cst_0) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<f64>
    %3 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<4x6xi1>
    %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.and across dimensions = [0, 1] : (tensor<4x6xi1>, tensor<i1>) -> tensor<i1>
    %5 = call @_where_1(%4, %cst, %2) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
    return %5 : tensor<f64>
  }
  func.func private @_where_0(%arg0: tensor<4x6xi1>, %arg1: tensor<f64>, %arg2: tensor<4x6xf64>) -> tensor<4x6xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<4x6xf64>
    %1 = stablehlo.select %arg0, %0, %arg2 : tensor<4x6xi1>, tensor<4x6xf64>
    return %1 : tensor<4x6xf64>
  }
  func.func private @_where_1(%arg0: tensor<i1>, %arg1: tensor<f64>, %arg2: tensor<f64>) -> tensor<f64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<f64>
    return %0 : tensor<f64>
  }
  func.func private @count_nonzero(%arg0: tensor<4x6xi1>) -> tensor<6xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<4x6xi1>
    %1 = stablehlo.compare NE, %arg0, %0, UNSIGNED : (tensor<4x6xi1>, tensor<4x6xi1>) -> tensor<4x6xi1>
    %2 = stablehlo.convert %1 : (tensor<4x6xi1>) -> tensor<4x6xi32>
    %3 = stablehlo.convert %2 : (tensor<4x6xi32>) -> tensor<4x6xi64>
    %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4x6xi64>, tensor<i64>) -> tensor<6xi64>
    return %4 : tensor<6xi64>
  }
  func.func private @reduce_2(%arg0: tensor<4x6xi32>) -> tensor<6xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.xor across dimensions = [0] : (tensor<4x6xi32>, tensor<i32>) -> tensor<6xi32>
    return %0 : tensor<6xi32>
  }
  func.func private @_ptp(%arg0: tensor<4x6xf64>) -> tensor<f64> {
    %cst = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %cst_0 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<f64>
    %1 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.minimum across dimensions = [0, 1] : (tensor<4x6xf64>, tensor<f64>) -> tensor<f64>
    %2 = stablehlo.subtract %0, %1 : tensor<f64>
    return %2 : tensor<f64>
  }
}
