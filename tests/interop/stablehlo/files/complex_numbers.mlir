module @jit_complex_numbers attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf64>, %arg1: tensor<4x3xf64>) -> (tensor<4x3xcomplex<f64>> {jax.result_info = "result[0]"}, tensor<4x3xf64> {jax.result_info = "result[1]"}, tensor<4x3xcomplex<f64>> {jax.result_info = "result[2]"}, tensor<4x3xf64> {jax.result_info = "result[3]"}, tensor<4x3xf64> {jax.result_info = "result[4]"}, tensor<4x3xf64> {jax.result_info = "result[5]"}, tensor<3xcomplex<f64>> {jax.result_info = "result[6]"}, tensor<4x4xcomplex<f64>> {jax.result_info = "result[7]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<4x3xf64>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<4x3xf64>
    %cst_1 = stablehlo.constant dense<0x7FF0000000000000> : tensor<4x3xf64>
    %cst_2 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f64>>
    %cst_3 = stablehlo.constant dense<(1.000000e+00,0.000000e+00)> : tensor<complex<f64>>
    %0 = stablehlo.complex %arg0, %arg1 : tensor<4x3xcomplex<f64>>
    %1 = stablehlo.multiply %0, %0 : tensor<4x3xcomplex<f64>>
    %2 = stablehlo.abs %0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %3 = stablehlo.real %0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %4 = stablehlo.imag %0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %5 = stablehlo.negate %4 : tensor<4x3xf64>
    %6 = stablehlo.complex %3, %5 : tensor<4x3xcomplex<f64>>
    %7 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<complex<f64>>) -> tensor<4x3xcomplex<f64>>
    %8 = stablehlo.add %7, %0 : tensor<4x3xcomplex<f64>>
    %9 = stablehlo.divide %0, %8 : tensor<4x3xcomplex<f64>>
    %10 = stablehlo.real %9 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %11 = stablehlo.real %0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %12 = stablehlo.exponential %11 : tensor<4x3xf64>
    %13 = stablehlo.compare EQ, %12, %cst_1 : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xi1>
    %14 = stablehlo.multiply %11, %cst_0 : tensor<4x3xf64>
    %15 = stablehlo.exponential %14 : tensor<4x3xf64>
    %16 = stablehlo.imag %0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %17 = stablehlo.cosine %16 : tensor<4x3xf64>
    %18 = stablehlo.multiply %15, %17 : tensor<4x3xf64>
    %19 = stablehlo.multiply %18, %15 : tensor<4x3xf64>
    %20 = stablehlo.multiply %12, %17 : tensor<4x3xf64>
    %21 = stablehlo.select %13, %19, %20 : tensor<4x3xi1>, tensor<4x3xf64>
    %22 = stablehlo.compare EQ, %16, %cst : (tensor<4x3xf64>, tensor<4x3xf64>) -> tensor<4x3xi1>
    %23 = stablehlo.sine %16 : tensor<4x3xf64>
    %24 = stablehlo.multiply %15, %23 : tensor<4x3xf64>
    %25 = stablehlo.multiply %24, %15 : tensor<4x3xf64>
    %26 = stablehlo.multiply %12, %23 : tensor<4x3xf64>
    %27 = stablehlo.select %13, %25, %26 : tensor<4x3xi1>, tensor<4x3xf64>
    %28 = stablehlo.select %22, %cst, %27 : tensor<4x3xi1>, tensor<4x3xf64>
    %29 = stablehlo.complex %21, %28 : tensor<4x3xcomplex<f64>>
    %30 = stablehlo.imag %29 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %31 = call @angle(%0) : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %32 = stablehlo.reduce(%0 init: %cst_2) applies stablehlo.add across dimensions = [0] : (tensor<4x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
    %33 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x3xcomplex<f64>>) -> tensor<3x4xcomplex<f64>>
    %34 = stablehlo.dot_general %0, %33, contracting_dims = [1] x [0] : (tensor<4x3xcomplex<f64>>, tensor<3x4xcomplex<f64>>) -> tensor<4x4xcomplex<f64>>
    return %1, %2, %6, %10, %30, %31, %32, %34 : tensor<4x3xcomplex<f64>>, tensor<4x3xf64>, tensor<4x3xcomplex<f64>>, tensor<4x3xf64>, tensor<4x3xf64>, tensor<4x3xf64>, tensor<3xcomplex<f64>>, tensor<4x4xcomplex<f64>>
  }
  func.func private @angle(%arg0: tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64> {
    %0 = stablehlo.real %arg0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %1 = stablehlo.imag %arg0 : (tensor<4x3xcomplex<f64>>) -> tensor<4x3xf64>
    %2 = stablehlo.atan2 %1, %0 : tensor<4x3xf64>
    return %2 : tensor<4x3xf64>
  }
}
