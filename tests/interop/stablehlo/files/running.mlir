module @jit_running attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x9xf64>) -> (tensor<4x9xf64> {jax.result_info = "result[0]"}, tensor<4x9xf64> {jax.result_info = "result[1]"}, tensor<4x9xf64> {jax.result_info = "result[2]"}, tensor<4x9xf64> {jax.result_info = "result[3]"}, tensor<4x9xf64> {jax.result_info = "result[4]"}, tensor<4x9xf64> {jax.result_info = "result[5]"}, tensor<4x9xf64> {jax.result_info = "result[6]"}, tensor<4x8xf64> {jax.result_info = "result[7]"}, tensor<4x9xi64> {jax.result_info = "result[8]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = call @cumsum(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %1 = call @cumprod(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %2 = call @cummax(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %3 = call @cummin(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %4 = call @cumsum_2(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %5 = call @cumlogsumexp(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    %6 = stablehlo.slice %arg0 [0:4, 0:8:2] : (tensor<4x9xf64>) -> tensor<4x4xf64>
    %7 = stablehlo.slice %arg0 [0:4, 1:9:2] : (tensor<4x9xf64>) -> tensor<4x4xf64>
    %8 = stablehlo.add %6, %7 : tensor<4x4xf64>
    %9 = stablehlo.slice %8 [0:4, 0:3:2] : (tensor<4x4xf64>) -> tensor<4x2xf64>
    %10 = stablehlo.slice %8 [0:4, 1:4:2] : (tensor<4x4xf64>) -> tensor<4x2xf64>
    %11 = stablehlo.add %9, %10 : tensor<4x2xf64>
    %12 = stablehlo.slice %11 [0:4, 0:1:2] : (tensor<4x2xf64>) -> tensor<4x1xf64>
    %13 = stablehlo.slice %11 [0:4, 1:2:2] : (tensor<4x2xf64>) -> tensor<4x1xf64>
    %14 = stablehlo.add %12, %13 : tensor<4x1xf64>
    %15 = stablehlo.slice %14 [0:4, 0:0] : (tensor<4x1xf64>) -> tensor<4x0xf64>
    %16 = stablehlo.slice %11 [0:4, 2:2:2] : (tensor<4x2xf64>) -> tensor<4x0xf64>
    %17 = stablehlo.add %15, %16 : tensor<4x0xf64>
    %18 = stablehlo.slice %11 [0:4, 0:1] : (tensor<4x2xf64>) -> tensor<4x1xf64>
    %19 = stablehlo.concatenate %18, %17, dim = 1 : (tensor<4x1xf64>, tensor<4x0xf64>) -> tensor<4x1xf64>
    %20 = stablehlo.pad %19, %cst, low = [0, 0], high = [0, 1], interior = [0, 1] : (tensor<4x1xf64>, tensor<f64>) -> tensor<4x2xf64>
    %21 = stablehlo.pad %14, %cst, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x1xf64>, tensor<f64>) -> tensor<4x2xf64>
    %22 = stablehlo.add %20, %21 : tensor<4x2xf64>
    %23 = stablehlo.slice %22 [0:4, 0:1] : (tensor<4x2xf64>) -> tensor<4x1xf64>
    %24 = stablehlo.slice %8 [0:4, 2:4:2] : (tensor<4x4xf64>) -> tensor<4x1xf64>
    %25 = stablehlo.add %23, %24 : tensor<4x1xf64>
    %26 = stablehlo.slice %8 [0:4, 0:1] : (tensor<4x4xf64>) -> tensor<4x1xf64>
    %27 = stablehlo.concatenate %26, %25, dim = 1 : (tensor<4x1xf64>, tensor<4x1xf64>) -> tensor<4x2xf64>
    %28 = stablehlo.pad %27, %cst, low = [0, 0], high = [0, 1], interior = [0, 1] : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
    %29 = stablehlo.pad %22, %cst, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x2xf64>, tensor<f64>) -> tensor<4x4xf64>
    %30 = stablehlo.add %28, %29 : tensor<4x4xf64>
    %31 = stablehlo.slice %arg0 [0:4, 2:9:2] : (tensor<4x9xf64>) -> tensor<4x4xf64>
    %32 = stablehlo.add %30, %31 : tensor<4x4xf64>
    %33 = stablehlo.slice %arg0 [0:4, 0:1] : (tensor<4x9xf64>) -> tensor<4x1xf64>
    %34 = stablehlo.concatenate %33, %32, dim = 1 : (tensor<4x1xf64>, tensor<4x4xf64>) -> tensor<4x5xf64>
    %35 = stablehlo.pad %34, %cst, low = [0, 0], high = [0, 0], interior = [0, 1] : (tensor<4x5xf64>, tensor<f64>) -> tensor<4x9xf64>
    %36 = stablehlo.pad %30, %cst, low = [0, 1], high = [0, 1], interior = [0, 1] : (tensor<4x4xf64>, tensor<f64>) -> tensor<4x9xf64>
    %37 = stablehlo.add %35, %36 : tensor<4x9xf64>
    %38 = call @diff(%arg0) : (tensor<4x9xf64>) -> tensor<4x8xf64>
    %39 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<4x9xf64>
    %40 = stablehlo.compare GT, %arg0, %39, FLOAT : (tensor<4x9xf64>, tensor<4x9xf64>) -> tensor<4x9xi1>
    %41 = call @cumsum_3(%40) : (tensor<4x9xi1>) -> tensor<4x9xi64>
    return %0, %1, %2, %3, %4, %5, %37, %38, %41 : tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x9xf64>, tensor<4x8xf64>, tensor<4x9xi64>
  }
  func.func private @cumsum(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %0 = call @cumsum_0(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    return %0 : tensor<4x9xf64>
  }
  func.func private @cumsum_0(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %1 : tensor<4x9xf64>
  }
  func.func private @cumprod(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %0 = call @cumprod_1(%arg0) : (tensor<4x9xf64>) -> tensor<4x9xf64>
    return %0 : tensor<4x9xf64>
  }
  func.func private @cumprod_1(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 4, 1>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %1 = stablehlo.multiply %arg1, %arg2 : tensor<f64>
      stablehlo.return %1 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %0 : tensor<4x9xf64>
  }
  func.func private @cummax(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %1 : tensor<4x9xf64>
  }
  func.func private @cummin(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [0, 8]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %2 = stablehlo.minimum %arg1, %arg2 : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %1 : tensor<4x9xf64>
  }
  func.func private @cumsum_2(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<f64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[0, 0], [0, 8]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f64>
      stablehlo.return %2 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %1 : tensor<4x9xf64>
  }
  func.func private @cumlogsumexp(%arg0: tensor<4x9xf64>) -> tensor<4x9xf64> {
    %cst = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 9>}> ({
    ^bb0(%arg1: tensor<f64>, %arg2: tensor<f64>):
      %1 = stablehlo.maximum %arg1, %arg2 : tensor<f64>
      %2 = stablehlo.subtract %arg1, %arg2 : tensor<f64>
      %3 = stablehlo.compare NE, %2, %2, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %4 = stablehlo.add %arg1, %arg2 : tensor<f64>
      %5 = stablehlo.abs %2 : tensor<f64>
      %6 = stablehlo.negate %5 : tensor<f64>
      %7 = stablehlo.exponential %6 : tensor<f64>
      %8 = stablehlo.log_plus_one %7 : tensor<f64>
      %9 = stablehlo.add %1, %8 : tensor<f64>
      %10 = stablehlo.select %3, %4, %9 : tensor<i1>, tensor<f64>
      stablehlo.return %10 : tensor<f64>
    }) : (tensor<4x9xf64>, tensor<f64>) -> tensor<4x9xf64>
    return %0 : tensor<4x9xf64>
  }
  func.func private @diff(%arg0: tensor<4x9xf64>) -> tensor<4x8xf64> {
    %0 = stablehlo.slice %arg0 [0:4, 1:9] : (tensor<4x9xf64>) -> tensor<4x8xf64>
    %1 = stablehlo.slice %arg0 [0:4, 0:8] : (tensor<4x9xf64>) -> tensor<4x8xf64>
    %2 = stablehlo.subtract %0, %1 : tensor<4x8xf64>
    return %2 : tensor<4x8xf64>
  }
  func.func private @cumsum_3(%arg0: tensor<4x9xi1>) -> tensor<4x9xi64> {
    %0 = stablehlo.convert %arg0 : (tensor<4x9xi1>) -> tensor<4x9xi64>
    %1 = call @cumsum_4(%0) : (tensor<4x9xi64>) -> tensor<4x9xi64>
    return %1 : tensor<4x9xi64>
  }
  func.func private @cumsum_4(%arg0: tensor<4x9xi64>) -> tensor<4x9xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<i64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 4, 1>}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %2 : tensor<i64>
    }) : (tensor<4x9xi64>, tensor<i64>) -> tensor<4x9xi64>
    return %1 : tensor<4x9xi64>
  }
}
