module @jit_elementary attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x5xf64>) -> (tensor<4x5xf64> {jax.result_info = "result[0]"}, tensor<4x5xf64> {jax.result_info = "result[1]"}, tensor<4x5xf64> {jax.result_info = "result[2]"}, tensor<4x5xf64> {jax.result_info = "result[3]"}, tensor<4x5xf64> {jax.result_info = "result[4]"}, tensor<4x5xf64> {jax.result_info = "result[5]"}, tensor<4x5xf64> {jax.result_info = "result[6]"}, tensor<4x5xf64> {jax.result_info = "result[7]"}, tensor<4x5xf64> {jax.result_info = "result[8]"}, tensor<4x5xf64> {jax.result_info = "result[9]"}, tensor<4x5xf64> {jax.result_info = "result[10]"}, tensor<4x5xf64> {jax.result_info = "result[11]"}, tensor<4x5xf64> {jax.result_info = "result[12]"}, tensor<4x5xf64> {jax.result_info = "result[13]"}, tensor<4x5xf64> {jax.result_info = "result[14]"}, tensor<4x5xf64> {jax.result_info = "result[15]"}, tensor<4x5xf64> {jax.result_info = "result[16]"}, tensor<4x5xf64> {jax.result_info = "result[17]"}, tensor<4x5xf64> {jax.result_info = "result[18]"}, tensor<4x5xf64> {jax.result_info = "result[19]"}, tensor<4x5xf64> {jax.result_info = "result[20]"}, tensor<4x5xf64> {jax.result_info = "result[21]"}, tensor<4x5xf64> {jax.result_info = "result[22]"}, tensor<4x5xf64> {jax.result_info = "result[23]"}, tensor<4x5xf64> {jax.result_info = "result[24]"}, tensor<4x5xf64> {jax.result_info = "result[25]"}, tensor<4x5xf64> {jax.result_info = "result[26]"}, tensor<4x5xf64> {jax.result_info = "result[27]"}, tensor<4x5xf64> {jax.result_info = "result[28]"}, tensor<4x5xf64> {jax.result_info = "result[29]"}, tensor<4x5xf64> {jax.result_info = "result[30]"}, tensor<4x5xf64> {jax.result_info = "result[31]"}, tensor<4x5xf64> {jax.result_info = "result[32]"}, tensor<4x5xf64> {jax.result_info = "result[33]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %cst_0 = stablehlo.constant dense<2.000000e-01> : tensor<f64>
    %cst_1 = stablehlo.constant dense<2.500000e+00> : tensor<f64>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %cst_3 = stablehlo.constant dense<1.000000e-01> : tensor<f64>
    %0 = stablehlo.abs %arg0 : tensor<4x5xf64>
    %1 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %2 = stablehlo.add %0, %1 : tensor<4x5xf64>
    %3 = stablehlo.abs %arg0 : tensor<4x5xf64>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %5 = stablehlo.add %4, %3 : tensor<4x5xf64>
    %6 = stablehlo.divide %arg0, %5 : tensor<4x5xf64>
    %7 = stablehlo.sine %arg0 : tensor<4x5xf64>
    %8 = stablehlo.cosine %arg0 : tensor<4x5xf64>
    %9 = stablehlo.tan %arg0 : tensor<4x5xf64>
    %10 = stablehlo.tanh %arg0 : tensor<4x5xf64>
    %11 = stablehlo.exponential %arg0 : tensor<4x5xf64>
    %12 = stablehlo.exponential_minus_one %arg0 : tensor<4x5xf64>
    %13 = stablehlo.log %2 : tensor<4x5xf64>
    %14 = stablehlo.log_plus_one %2 : tensor<4x5xf64>
    %15 = stablehlo.sqrt %2 : tensor<4x5xf64>
    %16 = stablehlo.rsqrt %2 : tensor<4x5xf64>
    %17 = stablehlo.cbrt %arg0 : tensor<4x5xf64>
    %18 = stablehlo.negate %arg0 : tensor<4x5xf64>
    %19 = stablehlo.exponential %18 : tensor<4x5xf64>
    %20 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %21 = stablehlo.add %20, %19 : tensor<4x5xf64>
    %22 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %23 = stablehlo.divide %22, %21 : tensor<4x5xf64>
    %24 = stablehlo.sign %arg0 : tensor<4x5xf64>
    %25 = stablehlo.floor %arg0 : tensor<4x5xf64>
    %26 = stablehlo.ceil %arg0 : tensor<4x5xf64>
    %27 = stablehlo.negate %arg0 : tensor<4x5xf64>
    %28 = stablehlo.composite "chlo.asin" %6 {decomposition = @chlo.asin.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %29 = stablehlo.composite "chlo.acos" %6 {decomposition = @chlo.acos.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %30 = stablehlo.atan2 %arg0, %cst : tensor<4x5xf64>
    %31 = stablehlo.composite "chlo.sinh" %arg0 {decomposition = @chlo.sinh.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %32 = stablehlo.composite "chlo.cosh" %arg0 {decomposition = @chlo.cosh.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %33 = stablehlo.composite "chlo.asinh" %arg0 {decomposition = @chlo.asinh.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %34 = stablehlo.composite "chlo.atanh" %6 {decomposition = @chlo.atanh.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %35 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %36 = stablehlo.add %35, %2 : tensor<4x5xf64>
    %37 = call @arccosh(%36) : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %38 = stablehlo.power %2, %arg0 : tensor<4x5xf64>
    %39 = stablehlo.atan2 %arg0, %2 : tensor<4x5xf64>
    %40 = call @remainder(%arg0, %2) : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xf64>
    %41 = call @fmod(%arg0, %2) : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xf64>
    %42 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %43 = stablehlo.multiply %arg0, %42 : tensor<4x5xf64>
    %44 = call @round(%43) : (tensor<4x5xf64>) -> tensor<4x5xf64>
    %45 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %46 = stablehlo.multiply %arg0, %45 : tensor<4x5xf64>
    %47 = stablehlo.round_nearest_afz %46 : tensor<4x5xf64>
    %48 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf64>
    %49 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %50 = stablehlo.maximum %arg0, %49 : tensor<4x5xf64>
    %51 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %52 = stablehlo.minimum %arg0, %51 : tensor<4x5xf64>
    %53 = stablehlo.multiply %arg0, %arg0 : tensor<4x5xf64>
    %54 = stablehlo.multiply %53, %arg0 : tensor<4x5xf64>
    return %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %37, %38, %39, %40, %41, %44, %47, %48, %50, %52, %54 : tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>, tensor<4x5xf64>
  }
  func.func private @chlo.atanh.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf64>
    %cst_0 = stablehlo.constant dense<0x7FF8000000000000> : tensor<4x5xf64>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %0 = stablehlo.abs %arg0 : tensor<4x5xf64>
    %1 = stablehlo.compare GT, %0, %cst_1 : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %2 = stablehlo.log_plus_one %arg0 : tensor<4x5xf64>
    %3 = stablehlo.negate %arg0 : tensor<4x5xf64>
    %4 = stablehlo.log_plus_one %3 : tensor<4x5xf64>
    %5 = stablehlo.subtract %2, %4 : tensor<4x5xf64>
    %6 = stablehlo.multiply %5, %cst : tensor<4x5xf64>
    %7 = stablehlo.select %1, %cst_0, %6 : tensor<4x5xi1>, tensor<4x5xf64>
    return %7 : tensor<4x5xf64>
  }
  func.func private @chlo.asinh.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<4x5xf64>
    %cst_1 = stablehlo.constant dense<1.7976931348623157E+308> : tensor<4x5xf64>
    %0 = stablehlo.sign %arg0 : tensor<4x5xf64>
    %1 = stablehlo.abs %arg0 : tensor<4x5xf64>
    %2 = stablehlo.sqrt %cst_1 : tensor<4x5xf64>
    %3 = stablehlo.compare GE, %1, %2 : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %4 = stablehlo.log %cst_0 : tensor<4x5xf64>
    %5 = stablehlo.log %1 : tensor<4x5xf64>
    %6 = stablehlo.add %4, %5 : tensor<4x5xf64>
    %7 = stablehlo.multiply %1, %1 : tensor<4x5xf64>
    %8 = stablehlo.add %cst, %7 : tensor<4x5xf64>
    %9 = stablehlo.sqrt %8 : tensor<4x5xf64>
    %10 = stablehlo.add %cst, %9 : tensor<4x5xf64>
    %11 = stablehlo.divide %7, %10 : tensor<4x5xf64>
    %12 = stablehlo.add %1, %11 : tensor<4x5xf64>
    %13 = stablehlo.log_plus_one %12 : tensor<4x5xf64>
    %14 = stablehlo.select %3, %6, %13 : tensor<4x5xi1>, tensor<4x5xf64>
    %15 = stablehlo.multiply %0, %14 : tensor<4x5xf64>
    return %15 : tensor<4x5xf64>
  }
  func.func private @chlo.cosh.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf64>
    %0 = stablehlo.log %cst : tensor<4x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf64>
    %2 = stablehlo.exponential %1 : tensor<4x5xf64>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf64>
    %4 = stablehlo.exponential %3 : tensor<4x5xf64>
    %5 = stablehlo.add %2, %4 : tensor<4x5xf64>
    return %5 : tensor<4x5xf64>
  }
  func.func private @chlo.sinh.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<4x5xf64>
    %0 = stablehlo.log %cst_0 : tensor<4x5xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<4x5xf64>
    %2 = stablehlo.exponential %1 : tensor<4x5xf64>
    %3 = stablehlo.subtract %0, %arg0 : tensor<4x5xf64>
    %4 = stablehlo.exponential %3 : tensor<4x5xf64>
    %5 = stablehlo.subtract %2, %4 : tensor<4x5xf64>
    %6 = stablehlo.exponential_minus_one %arg0 : tensor<4x5xf64>
    %7 = stablehlo.add %6, %cst : tensor<4x5xf64>
    %8 = stablehlo.divide %6, %7 : tensor<4x5xf64>
    %9 = stablehlo.add %6, %8 : tensor<4x5xf64>
    %10 = stablehlo.multiply %cst_0, %9 : tensor<4x5xf64>
    %11 = stablehlo.abs %arg0 : tensor<4x5xf64>
    %12 = stablehlo.compare LT, %11, %cst : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %13 = stablehlo.select %12, %10, %5 : tensor<4x5xi1>, tensor<4x5xf64>
    return %13 : tensor<4x5xf64>
  }
  func.func private @chlo.acos.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %0 = stablehlo.subtract %cst, %arg0 : tensor<4x5xf64>
    %1 = stablehlo.add %cst, %arg0 : tensor<4x5xf64>
    %2 = stablehlo.multiply %0, %1 : tensor<4x5xf64>
    %3 = stablehlo.sqrt %2 : tensor<4x5xf64>
    %4 = stablehlo.atan2 %3, %arg0 : tensor<4x5xf64>
    return %4 : tensor<4x5xf64>
  }
  func.func private @chlo.asin.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %0 = stablehlo.subtract %cst, %arg0 : tensor<4x5xf64>
    %1 = stablehlo.add %cst, %arg0 : tensor<4x5xf64>
    %2 = stablehlo.multiply %0, %1 : tensor<4x5xf64>
    %3 = stablehlo.sqrt %2 : tensor<4x5xf64>
    %4 = stablehlo.add %cst, %3 : tensor<4x5xf64>
    %5 = stablehlo.atan2 %arg0, %4 : tensor<4x5xf64>
    %6 = stablehlo.add %5, %5 : tensor<4x5xf64>
    return %6 : tensor<4x5xf64>
  }
  func.func private @arccosh(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %0 = stablehlo.composite "chlo.acosh" %arg0 {decomposition = @chlo.acosh.impl, version = 1 : i32} : (tensor<4x5xf64>) -> tensor<4x5xf64>
    return %0 : tensor<4x5xf64>
  }
  func.func private @chlo.acosh.impl(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<4x5xf64>
    %cst_0 = stablehlo.constant dense<1.7976931348623157E+308> : tensor<4x5xf64>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<4x5xf64>
    %0 = stablehlo.divide %cst_0, %cst_1 : tensor<4x5xf64>
    %1 = stablehlo.compare GE, %arg0, %0 : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %2 = stablehlo.log %cst_1 : tensor<4x5xf64>
    %3 = stablehlo.log %arg0 : tensor<4x5xf64>
    %4 = stablehlo.add %2, %3 : tensor<4x5xf64>
    %5 = stablehlo.subtract %arg0, %cst : tensor<4x5xf64>
    %6 = stablehlo.sqrt %5 : tensor<4x5xf64>
    %7 = stablehlo.add %arg0, %cst : tensor<4x5xf64>
    %8 = stablehlo.sqrt %7 : tensor<4x5xf64>
    %9 = stablehlo.add %8, %6 : tensor<4x5xf64>
    %10 = stablehlo.multiply %6, %9 : tensor<4x5xf64>
    %11 = stablehlo.log_plus_one %10 : tensor<4x5xf64>
    %12 = stablehlo.select %1, %4, %11 : tensor<4x5xi1>, tensor<4x5xf64>
    return %12 : tensor<4x5xf64>
  }
  func.func private @remainder(%arg0: tensor<4x5xf64>, %arg1: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<4x5xf64>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %2 = stablehlo.compare NE, %0, %1, FLOAT : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %4 = stablehlo.compare LT, %0, %3, FLOAT : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x5xf64>
    %6 = stablehlo.compare LT, %arg1, %5, FLOAT : (tensor<4x5xf64>, tensor<4x5xf64>) -> tensor<4x5xi1>
    %7 = stablehlo.compare NE, %4, %6, UNSIGNED : (tensor<4x5xi1>, tensor<4x5xi1>) -> tensor<4x5xi1>
    %8 = stablehlo.and %7, %2 : tensor<4x5xi1>
    %9 = stablehlo.add %0, %arg1 : tensor<4x5xf64>
    %10 = stablehlo.select %8, %9, %0 : tensor<4x5xi1>, tensor<4x5xf64>
    return %10 : tensor<4x5xf64>
  }
  func.func private @fmod(%arg0: tensor<4x5xf64>, %arg1: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<4x5xf64>
    return %0 : tensor<4x5xf64>
  }
  func.func private @round(%arg0: tensor<4x5xf64>) -> tensor<4x5xf64> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x5xf64>
    return %0 : tensor<4x5xf64>
  }
}
