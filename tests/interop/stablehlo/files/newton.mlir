module @jit_newton attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf64>) -> (tensor<5xf64> {jax.result_info = "result[0]"}, tensor<f64> {jax.result_info = "result[1]"}, tensor<i64> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %cst = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %cst_0 = stablehlo.constant dense<3.000000e+00> : tensor<f64>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f64>
    %c_2 = stablehlo.constant dense<false> : tensor<i1>
    %c_3 = stablehlo.constant dense<50> : tensor<i64>
    %cst_4 = stablehlo.constant dense<9.9999999999999998E-13> : tensor<f64>
    %c_5 = stablehlo.constant dense<0> : tensor<i64>
    %cst_6 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %cst_7 = stablehlo.constant dense<1.500000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f64>) -> tensor<5xf64>
    %1:4 = stablehlo.while(%iterArg = %arg0, %iterArg_8 = %0, %iterArg_9 = %cst_6, %iterArg_10 = %c_5) : tensor<5xf64>, tensor<5xf64>, tensor<f64>, tensor<i64>
    cond {
      %2 = stablehlo.compare GT, %iterArg_9, %cst_4, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %3 = stablehlo.compare LT, %iterArg_10, %c_3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i1>) -> tensor<i1>
      %5 = stablehlo.compare NE, %2, %4, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %6 = stablehlo.convert %5 : tensor<i1>
      %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i1>) -> tensor<i1>
      %8 = stablehlo.compare NE, %3, %7, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %9 = stablehlo.convert %8 : tensor<i1>
      %10 = stablehlo.and %6, %9 : tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %2 = stablehlo.multiply %iterArg_8, %iterArg_8 : tensor<5xf64>
      %3 = stablehlo.multiply %2, %iterArg_8 : tensor<5xf64>
      %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5xf64>
      %5 = stablehlo.subtract %3, %4 : tensor<5xf64>
      %6 = stablehlo.convert %5 : tensor<5xf64>
      %7 = stablehlo.subtract %6, %iterArg : tensor<5xf64>
      %8 = stablehlo.multiply %iterArg_8, %iterArg_8 : tensor<5xf64>
      %9 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5xf64>
      %10 = stablehlo.multiply %9, %8 : tensor<5xf64>
      %11 = stablehlo.convert %10 : tensor<5xf64>
      %12 = stablehlo.divide %7, %11 : tensor<5xf64>
      %13 = stablehlo.convert %iterArg_8 : tensor<5xf64>
      %14 = stablehlo.subtract %13, %12 : tensor<5xf64>
      %15 = stablehlo.convert %iterArg_8 : tensor<5xf64>
      %16 = stablehlo.subtract %14, %15 : tensor<5xf64>
      %17 = stablehlo.abs %16 : tensor<5xf64>
      %18 = stablehlo.reduce(%17 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<5xf64>, tensor<f64>) -> tensor<f64>
      %19 = stablehlo.add %iterArg_10, %c : tensor<i64>
      stablehlo.return %iterArg, %14, %18, %19 : tensor<5xf64>, tensor<5xf64>, tensor<f64>, tensor<i64>
    }
    return %1#1, %1#2, %1#3 : tensor<5xf64>, tensor<f64>, tensor<i64>
  }
}
